"""The life of a NodeSet: all policies put together.

`plan` is a pure function. A view that is as wanted gives no action and the status it has; doing the
actions of a plan and looking again gives no further ones but those that waited for something.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.kinds import Pod
from penstock.base.text import list_some
from penstock.decide.action import (
    Action,
    AddFinalizer,
    CreatePod,
    DeleteNodeRecord,
    DeletePod,
    DeleteReservation,
    DeletionGround,
    DrainNode,
    EventReason,
    OwnClaim,
    PatchPod,
    RemoveFinalizer,
    ResumeNode,
    SetNodeComment,
    SetNodeFeatures,
    SetNodeTopology,
    SetPodConditions,
    SetReservation,
    UndrainNode,
)
from penstock.decide.drain import request as drain
from penstock.decide.drain.deletion_guard import DeletionVerdict, can_delete
from penstock.decide.nodeset import pvc as claims
from penstock.decide.nodeset.conditions import findings
from penstock.decide.nodeset.finalizer import finalizer_action, patience_in
from penstock.decide.nodeset.pod_roles import PodRoles, assign
from penstock.decide.nodeset.status import available_in, current, dated, old_ones, status
from penstock.decide.observed import node_comment
from penstock.decide.observed.pod import ENDED, is_finished, missing_labels, slurm_node_name
from penstock.decide.observed.pod_aggregates import update_aggregates
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.decide.placement.daemonset import placed
from penstock.decide.plan_cache import PlanCache, PlanInputs
from penstock.decide.pod import chart_labels, deadline
from penstock.decide.pod import protection as protect
from penstock.decide.pod.conditions import LATER_S, conditions_action, must_wait
from penstock.decide.rollout import maintenance
from penstock.decide.rollout.recreation import outdated, recreate_after
from penstock.decide.slurm_node import features as node_features
from penstock.decide.slurm_node import gres_change as gres_settle
from penstock.decide.slurm_node import records, topology
from penstock.decide.slurm_node import registration as node_registration
from penstock.model.worker_status import WorkerSetStatus
from penstock.slurm.state import Node

_FORGOTTEN = "Slurm has no record of its node and cannot have it register again"
_UPDATED = "One of a newer template takes its place"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, in an order that is safe to stop in; what to write; what to tell.

    The conditions of `status` are made of `findings`. `wake_after` are seconds until time alone
    changes the decision, None when only an event does.
    """

    actions: tuple[Action, ...]
    status: WorkerSetStatus
    findings: tuple[Finding, ...]
    wake_after: float | None


@dataclass(slots=True)
class _PlannedActions:
    """Actions by kind while the pods are gone through."""

    patches: list[PatchPod]
    drains: list[DrainNode]
    returns: list[UndrainNode | ResumeNode]
    comments: list[SetNodeComment]
    places: list[SetNodeTopology]
    features: list[SetNodeFeatures]
    conditions: list[SetPodConditions]
    deletes: list[DeletePod]
    waits: list[float]
    """Seconds until a pod is to be looked at again, though nothing it depends on changes."""

    def __len__(self) -> int:
        lists = (self.patches, self.drains, self.returns, self.comments, self.places)
        others = (self.features, self.conditions, self.deletes, self.waits)
        return sum(map(len, lists)) + sum(map(len, others))


def plan(view: WorkerSetView, quiet: PlanCache | None = None) -> Plan:
    """Decide about one NodeSet. `quiet` is what earlier plans about it left, to spare work."""
    quiet = PlanCache() if quiet is None else quiet
    quiet.aggregates = update_aggregates(
        quiet.aggregates, view.workers.names, view.workers.marks, view.pods
    )
    view = dated(placed(replace(view, known_aggregates=quiet.aggregates), quiet))
    slurm = SlurmSnapshot.of(view.nodes, view.jobs)
    roles = assign(view, slurm)
    shared = view.aggregates.shared_slurm_nodes
    doing = _PlannedActions([], [], [], [], [], [], [], [], [])
    held: dict[str, DeletionVerdict] = {}
    of_claims = claims.actions(view, roles)
    unowned = {one.pod for one in of_claims if isinstance(one, OwnClaim)}
    for pod in roles.to_delete:
        verdict = can_delete(pod, slurm, abandoned=view.is_orphaned)
        if verdict.ground is not None and pod.metadata.name in unowned:
            # What scale-in takes along must know it before the pod is gone.
            continue
        if verdict.ground is not None:
            why = EventReason(
                drain.event_reason(view.workers.marks, roles.cause), verdict.why.message
            )
            _plan_deletion(view, slurm, pod, verdict.ground, why, doing)
        else:
            held[pod.metadata.name] = verdict
            _plan_pod(view, slurm, pod, roles.cause, shared, doing)
    for pod in roles.updating:
        verdict = can_delete(pod, slurm)
        if verdict.ground is not None:
            _plan_deletion(
                view, slurm, pod, verdict.ground, EventReason("RollingUpdate", _UPDATED), doing
            )
        else:
            held[pod.metadata.name] = verdict
            _plan_pod(
                view, slurm, pod, drain.DrainCause.UPDATE, shared, doing, idle=roles.update.idle
            )
    replaced = node_registration.to_replace(view, slurm, roles.kept)
    for pod in replaced:
        _plan_deletion(
            view,
            slurm,
            pod,
            DeletionGround.FORGOTTEN,
            EventReason("SlurmNodeForgotten", _FORGOTTEN),
            doing,
        )
    gone = {pod.metadata.name for pod in replaced}
    for pod, looked in _moved(view, slurm, roles.kept, shared, quiet):
        if pod.metadata.name in gone:
            continue
        before = len(doing)
        if recreate_after(pod, view.now) == 0:
            told = f"Pod {pod.metadata.name} ended ({pod.status.reason or pod.status.phase})"
            _plan_deletion(
                view, slurm, pod, DeletionGround.FINISHED, EventReason("PodEnded", told), doing
            )
        elif (ground := outdated(view, slurm, pod)) is not None:
            told = f"Pod {pod.metadata.name} never got to work and has an older template"
            _plan_deletion(view, slurm, pod, ground, EventReason("OldRevision", told), doing)
        else:
            _plan_pod(view, slurm, pod, None, shared, doing)
            if len(doing) == before and not is_finished(pod):
                quiet.store(looked)

    wait = bool(doing.conditions) and must_wait(view.pods, view.now)
    defunct = records.orphaned_records(view, roles.wanted, slurm)
    old = old_ones(view, (*roles.kept, *roles.updating))
    planned = maintenance.maintenance(view, slurm, old)
    registers = node_registration.registration(view, slurm)
    last = finalizer_action(view, slurm, defunct, claimed=bool(unowned))
    late = (*planned.actions, *((last,) if last is not None else ()))
    actions: tuple[Action, ...] = (
        *(one for one in late if isinstance(one, AddFinalizer)),
        *_renewals(view, roles, slurm),
        *_creates(view, roles),
        *of_claims,
        *doing.patches,
        *doing.places,
        *doing.comments,
        *doing.features,
        *doing.drains,
        *doing.returns,
        *(() if wait else doing.conditions),
        *registers.actions,
        *doing.deletes,
        *defunct.actions,
        *(one for one in late if isinstance(one, SetReservation | DeleteReservation)),
        *(one for one in late if isinstance(one, RemoveFinalizer)),
    )
    marks = view.workers.marks
    refused = topology.current_rejections(
        marks, view.refused_topologies, view.pods, view.kubernetes_nodes, slurm
    )
    said = findings(view, slurm, roles, held, refused, planned.finding)
    if shared:
        said = (_shared(shared), *said)
    again = topology.again_in(refused, view.now)
    waits = (_wake_after(view), LATER_S if wait else None, again, planned.wake, registers.wake)
    wake = [seconds for seconds in (*waits, *doing.waits) if seconds]
    return Plan(actions, status(view, slurm, said), said, min(wake, default=None))


def _moved(
    view: WorkerSetView,
    slurm: SlurmSnapshot,
    kept: tuple[Pod, ...],
    shared: frozenset[str],
    quiet: PlanCache,
) -> Iterator[tuple[Pod, PlanInputs]]:
    """The pods that must be looked at, with all that is looked at: those that are not quiet."""
    workers, meta = view.workers, view.workers.metadata
    quiet.set_inputs(
        (meta.namespace, meta.name, meta.uid),
        (view.revision, view.equal_revisions, view.parameters_by_revision, workers.update.type),
        (workers.protect_busy_pods, view.propagated_conditions, slurm.unknown_reason),
        view.workers.chart_labels,
        (
            shared,
            view.places.slurm_nodes if view.places is not None else None,
            {node for node, one in view.refused_topologies.items() if one.again_at > view.now},
        ),
    )
    quiet.keep(kept)
    records, holders, machines = slurm.records, slurm.known_jobs, view.kubernetes_nodes
    for pod in quiet.changed_pods(kept, records, holders, machines):
        name = slurm_node_name(pod)
        record, jobs = records.get(name), holders.get(name)
        machine = machines.get(pod.spec.node_name or "")
        if not quiet.is_unchanged(pod, record, jobs, machine):
            yield pod, (pod, record, jobs, machine)
    quiet.looked_at(kept, records, holders, machines)


def _plan_pod(
    view: WorkerSetView,
    slurm: SlurmSnapshot,
    pod: Pod,
    condemned: drain.DrainCause | None,
    shared: frozenset[str],
    doing: _PlannedActions,
    *,
    idle: frozenset[str] = frozenset(),
) -> None:
    """All that is done about a pod that stays for now.

    `idle` are the names of pods that are drained only while their node is idle.
    """
    workers, marks = view.workers, view.workers.marks
    name = slurm_node_name(pod)
    node = slurm.node(name)
    machine = view.kubernetes_nodes.get(pod.spec.node_name or "")
    wish = drain.drain_request(marks, pod, node, machine, condemned, view.propagated_conditions)
    cordon = drain.cordon_changes(marks, pod, node, wish, view.now)
    place = topology.annotation(marks, pod, node, machine)
    annotations = {**cordon, **deadline.changes(marks, pod, slurm), **place}
    labels = {
        **protect.labels(workers, pod, slurm),
        **missing_labels(marks, pod),
        **chart_labels.changes(pod, view.workers.chart_labels),
    }
    if annotations or labels:
        why = wish.why if wish and cordon else None
        meta = pod.metadata
        version = meta.resource_version if cordon else ""
        doing.patches.append(PatchPod(meta.name, meta.uid, labels, annotations, why, version))
    conditions = conditions_action(marks, pod, slurm, view.now)
    if conditions is not None:
        doing.conditions.append(conditions)
    if node is None or slurm.unknown_reason is not None or name in shared:
        return
    _comment(view, pod, node, doing, going=condemned is not None)
    if condemned is None and (told := _place(view, node, machine)) is not None:
        doing.places.append(told)
    if condemned is None and (given := node_features.step(marks, node, machine)) is not None:
        doing.features.append(given)
    if cordon:
        # First the pod says whose cordon it is, then Slurm is told: in whatever order things fail,
        # a user's cordon is never taken for ours, nor ours for a user's.
        return
    if wish is None and (left := gres_settle.settles_in(marks, node, view.now)) is not None:
        doing.waits.append(left)
    step = drain.next_node_update(marks, pod, node, wish, view.now)
    if isinstance(step, DrainNode):
        doing.drains.append(replace(step, while_idle=pod.metadata.name in idle))
    elif step is not None:
        doing.returns.append(step)


def _plan_deletion(
    view: WorkerSetView,
    slurm: SlurmSnapshot,
    pod: Pod,
    ground: DeletionGround,
    why: EventReason,
    doing: _PlannedActions,
) -> None:
    """Delete a pod. Nothing else is written to it, or its resourceVersion would be another."""
    name = slurm_node_name(pod)
    node = slurm.node(name)
    if node is not None and slurm.unknown_reason is None:
        _comment(view, pod, node, doing, going=True)
    meta = pod.metadata
    doing.deletes.append(DeletePod(meta.name, meta.uid, meta.resource_version, name, ground, why))


def _comment(
    view: WorkerSetView, pod: Pod, node: Node, doing: _PlannedActions, *, going: bool
) -> None:
    renew = not current(view, pod)
    confs = None if renew else view.parameters_by_revision
    machine = view.kubernetes_nodes.get(pod.spec.node_name or "")
    comment = records.comment_action(
        view.workers,
        pod,
        node,
        going=going,
        renew=renew,
        confs=confs,
        place=topology.wanted(view.workers.marks, machine),
    )
    if comment is not None:
        doing.comments.append(comment)


def _place(
    view: WorkerSetView, node: Node, machine: KubernetesNode | None
) -> SetNodeTopology | None:
    record = node_comment.read(node.comment)
    last = record.topology if record is not None else None
    refusal = view.refused_topologies.get(node.name)
    return topology.step(
        node, topology.wanted(view.workers.marks, machine), last, refusal, view.now
    )


def _may_create(view: WorkerSetView) -> bool:
    return view.controller is ControllerState.PRESENT and view.creation_blocked is None


def _renewals(
    view: WorkerSetView, roles: PodRoles, slurm: SlurmSnapshot
) -> tuple[DeleteNodeRecord, ...]:
    if not _may_create(view):
        return ()
    return records.deletions_before_recreate(
        view, [slot.slurm_node for slot in roles.missing], slurm
    )


def _creates(view: WorkerSetView, roles: PodRoles) -> tuple[CreatePod, ...]:
    if not _may_create(view):
        return ()
    held = claims.going(view, roles.missing)
    return tuple(
        CreatePod(slot, EventReason("CreatePod", f"Pod {slot.pod} is wanted"))
        for slot in roles.missing
        if slot.pod not in held
    )


def _shared(names: frozenset[str]) -> Finding:
    shown = list_some(sorted(names))
    return Finding(False, "SlurmNodeShared", f"Several pods claim the same Slurm node: {shown}")


def _wake_after(view: WorkerSetView) -> float | None:
    seconds = view.workers.min_ready_seconds
    ended = [pod for pod in view.pods if pod.status.phase in ENDED] if view.aggregates.ended else []
    waits = [wait for pod in ended if (wait := recreate_after(pod, view.now))]
    if seconds > 0:
        waits += [wait for pod in view.pods if (wait := available_in(pod, seconds, view.now))]
    patience = patience_in(view)
    if patience:
        waits.append(patience)
    if view.pods and view.patience:
        waits.append(view.patience)
    return min(waits, default=None)
