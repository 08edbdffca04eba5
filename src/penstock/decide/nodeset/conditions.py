"""Findings about a NodeSet: everything that is wrong or waited for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.base.text import list_some
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.reasons.object import cluster_deleting, cluster_gone, cluster_not_found
from penstock.catalog.reasons.pods import PodReason
from penstock.catalog.reasons.slurm_nodes import SlurmNodeReason
from penstock.catalog.reasons.updates import UpdateReason
from penstock.catalog.reasons.workers import WorkerReason
from penstock.decide.action import TopologyRejection
from penstock.decide.drain.deletion_guard import DeletionVerdict
from penstock.decide.nodeset.pod_roles import PodRoles
from penstock.decide.observed.deletion import PATIENCE_S, Deletion
from penstock.decide.observed.pod import slurmd_container
from penstock.decide.observed.pod_failure import PodFailure, next_step, pod_failure
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.rollout.maintenance import is_scheduled
from penstock.decide.slurm_node import topology
from penstock.model.worker_set import WorkerSet
from penstock.slurm.known import Unknown

_WAITS: Final[tuple[ConditionReason, ...]] = (
    SlurmNodeReason.UNKNOWN,
    WorkerReason.NODE_NOT_REGISTERED,
    WorkerReason.JOBS_RUNNING,
    WorkerReason.NODE_BUSY,
    WorkerReason.NODE_UNKNOWN,
    WorkerReason.NOT_DRAINED,
)
"""Reasons of the deletion guard; the first are those that a user can act on."""


def findings(
    view: WorkerSetView,
    observed: ObservedWorkers,
    roles: PodRoles,
    waiting: Mapping[Worker, DeletionVerdict],
    terminating_pvcs: Mapping[str, str],
    rejections: Mapping[str, TopologyRejection],
    reservation: Finding | None = None,
) -> tuple[Finding, ...]:
    """All findings, the gravest first; one that is ok when there is nothing else.

    `waiting` are the workers that are not deleted yet, with the reason; `terminating_pvcs` the
    PVC that each missing pod waits for; `rejections` the topologies that slurmctld rejects;
    `reservation` is the finding of a scheduled update.
    """
    found = (
        _controller(view, observed.deletion),
        _creation(view, roles),
        _places(view, observed),
        _pvcs(terminating_pvcs),
        _name_conflicts(view, roles),
        _deleting(view, roles),
        _waiting(view, roles, waiting),
        _terminating(roles),
        _not_ready(view, observed, roles),
        _not_available(view, roles),
        None if view.deleting else topology.finding(view.workers.marks, rejections),
        _slurm_unknown(view, observed),
        _not_registered(view, observed, roles),
        _updating(observed, roles, waiting),
        reservation,
        _old_revision(view, observed, roles),
        _no_node_fits(view, observed),
    )
    every = tuple(finding for finding in found if finding is not None)
    if all(finding.ok is True for finding in every):
        message = f"{len(roles.kept)} of {observed.replicas} pods are ready"
        every = (Finding(True, PodReason.READY, message), *every)
    shared = _shared(observed)
    return every if shared is None else (shared, *every)


def _places(view: WorkerSetView, observed: ObservedWorkers) -> Finding | None:
    """Kubernetes nodes that fit and get no pod."""
    placements = observed.placements
    if placements is None or not placements.problems:
        return None
    shown = [f"{node}: {why}" for node, why in placements.problems.items()]
    return Finding(
        False,
        WorkerReason.HOSTNAME_INVALID,
        f"{len(shown)} Kubernetes nodes have an invalid host name and no pod: "
        f"{list_some(shown, '; ')}. Correct "
        f"their annotation {view.workers.marks.hostname}",
    )


def _pvcs(waiting: Mapping[str, str]) -> Finding | None:
    """Pods that are not created while their former PVCs are terminating."""
    if not waiting:
        return None
    shown = list_some([f"{pod} for {pvc_name}" for pod, pvc_name in waiting.items()])
    message = f"{len(waiting)} pods wait for the deletion of PVCs of former pods: {shown}"
    return Finding(None, WorkerReason.CLAIMS_TERMINATING, message)


def _no_node_fits(view: WorkerSetView, observed: ObservedWorkers) -> Finding | None:
    """Whether there is no Kubernetes node at all for it, which may be intended."""
    placements = observed.placements
    if placements is None or placements.slots or placements.problems:
        return None
    return Finding(
        True,
        WorkerReason.NO_NODE_FITS,
        f"None of {len(view.kubernetes_nodes)} Kubernetes nodes fits nodeSelector, affinity and "
        f"tolerations of {view.workers.wording.template_field}, so there are no workers",
    )


def _controller(view: WorkerSetView, deletion: Deletion) -> Finding | None:
    workers, kind = view.workers, view.workers.wording.cluster_kind
    of = f"{kind} {workers.cluster}"
    if view.controller is ControllerState.PRESENT:
        return None
    if view.deleting:
        return Finding(None, cluster_gone(kind), f"{of} is deleted: {_going(view, deletion)}")
    if view.controller is ControllerState.DELETING:
        return Finding(
            False,
            cluster_deleting(kind),
            f"{of} is being deleted. Delete this {workers.kind} too, or create {of} again",
        )
    words = f"there is no {of}" if workers.cluster else f"it names no {kind}"
    return Finding(
        False,
        cluster_not_found(kind),
        f"{workers.wording.cluster_field}: {words}. Create it, or correct the name",
    )


def _going(view: WorkerSetView, deletion: Deletion) -> str:
    """What becomes of pods whose NodeSet goes with its Controller."""
    if not deletion.is_external or deletion.is_orphaned:
        return "pods are deleted without being drained"
    since = deletion.silent_since
    if since is None:
        return (
            "slurmctld is external and keeps running, so each pod is deleted once its Slurm node "
            "is drained and empty"
        )
    end = times.write(since + PATIENCE_S)
    return (
        f"slurmctld is external and has not answered since {times.write(since)}, so pods that may "
        f"have jobs stay until {end}. To end the wait at once: {_deletes(view.workers)}"
    )


def _creation(view: WorkerSetView, roles: PodRoles) -> Finding | None:
    if not roles.missing or view.controller is not ControllerState.PRESENT:
        return None
    if view.creation_blocked is not None:
        return view.creation_blocked
    names = list_some([slot.pod for slot in roles.missing])
    return Finding(None, WorkerReason.CREATING_PODS, f"Creating {len(roles.missing)} pods: {names}")


def _name_conflicts(view: WorkerSetView, roles: PodRoles) -> Finding | None:
    if not roles.name_conflicts:
        return None
    names = list_some([_owned(pod) for pod in roles.name_conflicts])
    return Finding(
        False,
        WorkerReason.POD_NAME_TAKEN,
        f"Pods of other owners have names of this {view.workers.kind}'s pods: {names}. Delete or "
        "rename them",
    )


def _owned(pod: Pod) -> str:
    owner = pod.metadata.controller
    return f"{pod.metadata.name} ({f'of {owner.kind} {owner.name}' if owner else 'without owner'})"


def _deleting(view: WorkerSetView, roles: PodRoles) -> Finding | None:
    if not view.deleting:
        return None
    left = len(roles.to_delete) + len(roles.terminating)
    return Finding(
        None,
        WorkerReason.DELETING,
        f"{view.workers.kind} {view.workers.metadata.name} is being deleted: {left} pods are left",
    )


def _waiting(
    view: WorkerSetView, roles: PodRoles, waiting: Mapping[Worker, DeletionVerdict]
) -> Finding | None:
    found = [(worker, waiting[worker]) for worker in roles.to_delete if worker in waiting]
    if not found:
        return None
    reasons = {verdict.why.reason for _, verdict in found}
    reason = next((known for known in _WAITS if known in reasons), WorkerReason.TERMINATING)
    shown = [_why_waiting(worker, verdict) for worker, verdict in found]
    words = f"{len(found)} pods wait to be deleted: {list_some(shown, '; ')}"
    if view.deleting and isinstance(view.nodes, Unknown):
        words += f". To end the wait, and their jobs, at once: {_deletes(view.workers)}"
    return Finding(None, reason, words)


def _deletes(workers: WorkerSet) -> str:
    """The command that deletes the pods, whatever they run."""
    return f"kubectl delete pods -n {workers.metadata.namespace} -l {workers.selector_text}"


def _why_waiting(worker: Worker, verdict: DeletionVerdict) -> str:
    since = worker.deletion_requested_at
    text = f"{worker.name}{f' since {since}' if since else ''}: {verdict.why.message}"
    if verdict.why.reason == WorkerReason.NODE_NOT_REGISTERED.value:
        text += "; if it cannot have jobs, delete the pod by hand"
    return text


def _terminating(roles: PodRoles) -> Finding | None:
    if not roles.terminating:
        return None
    names = list_some(_names(roles.terminating))
    return Finding(
        None,
        WorkerReason.PODS_TERMINATING,
        f"{len(roles.terminating)} pods are terminating: {names}",
    )


def _not_ready(view: WorkerSetView, observed: ObservedWorkers, roles: PodRoles) -> Finding | None:
    if view.deleting:
        return None
    waiting: list[PodFailure] = []
    if observed.aggregates.ready < len(view.pods):
        waiting = [_failure(worker.pod) for worker in roles.kept if not worker.is_ready]
    if not waiting:
        return None
    broken = [one for one in waiting if one.needs_action]
    names = list_some([one.text for one in broken or waiting], "; ")
    message = f"{len(waiting)} of {observed.replicas} pods are not ready: {names}"
    message += next_step(view.workers.images, broken)
    return (
        Finding(False, PodReason.FAILING, message)
        if broken
        else Finding(None, PodReason.NOT_READY, message)
    )


def _failure(pod: Pod) -> PodFailure:
    found = pod_failure(pod)
    if found is not None:
        return found
    slurmd = slurmd_container(pod)
    started = slurmd is not None and slurmd.state.running is not None
    text = f"{pod.metadata.name} ({'slurmd is not ready' if started else 'starting'})"
    return PodFailure(text, needs_action=False)


def _not_available(view: WorkerSetView, roles: PodRoles) -> Finding | None:
    seconds = view.workers.min_ready_seconds
    if seconds <= 0:
        return None
    young = _names(one for one in roles.kept if (one.available_in(seconds, view.now) or 0) > 0)
    if not young:
        return None
    message = f"{len(young)} pods are ready for less than {seconds} s: {list_some(young)}"
    return Finding(None, WorkerReason.PODS_NOT_AVAILABLE, message)


def _slurm_unknown(view: WorkerSetView, observed: ObservedWorkers) -> Finding | None:
    why = observed.slurm.unknown_reason
    if why is None or view.deleting or not any(worker.is_ready for worker in observed.all):
        return None
    message = f"Slurm's state is not known ({why}), so no worker is drained or deleted"
    return Finding(None, SlurmNodeReason.UNKNOWN, message)


def _not_registered(
    view: WorkerSetView, observed: ObservedWorkers, roles: PodRoles
) -> Finding | None:
    slurm = observed.slurm
    is_complete = observed.aggregates.slurm_nodes <= slurm.records.keys()
    if slurm.unknown_reason is not None or is_complete:
        return None
    names = _names(one for one in roles.kept if one.is_ready and one.node is None)
    if not names:
        return None
    message = f"{len(names)} ready pods have no node in Slurm: {list_some(names)}. "
    if view.cannot_register is None:
        message += "The operator makes their slurmd register again"
    else:
        by_hand = view.workers.update.type == "OnDelete"
        then = "delete the pods" if by_hand else "the pods are replaced within maxUnavailable"
        message += f"Their slurmd cannot register again ({view.cannot_register}): {then}"
    return Finding(None, SlurmNodeReason.NOT_REGISTERED, message)


def _updating(
    observed: ObservedWorkers, roles: PodRoles, waiting: Mapping[Worker, DeletionVerdict]
) -> Finding | None:
    """How far an update is, and what it waits for."""
    update = roles.update
    if not update.budget:
        return None
    done = len(roles.kept) - len(observed.outdated_of(roles.kept))
    text = (
        f"{done} of {observed.replicas} pods have the new template, "
        f"{update.budget} may be updated at a time"
    )
    shown = [_why_waiting(one, waiting[one]) for one in update.updating if one in waiting]
    shown += [f"{one.name} is new and not in use yet" for one in update.failing]
    shown += [f"{one.name} is cordoned by a user and stays" for one in update.cordoned]
    shown += [
        f"{one.name} stays, as {one.kubernetes_node_name} takes no new pod"
        for one in update.last_on_node
    ]
    return Finding(
        None, UpdateReason.ROLLING_UPDATE, f"{text}: {list_some(shown, '; ')}" if shown else text
    )


def _old_revision(
    view: WorkerSetView, observed: ObservedWorkers, roles: PodRoles
) -> Finding | None:
    names = _names(observed.outdated_of(roles.kept))
    if not names or view.deleting or roles.update.budget or is_scheduled(view.workers):
        return None
    message = (
        f"{len(names)} pods have an older template and keep it until they are deleted: "
        f"{list_some(names)}"
    )
    return Finding(True, UpdateReason.OLD_REVISION, message)


def _shared(observed: ObservedWorkers) -> Finding | None:
    names = observed.aggregates.shared_slurm_nodes
    if not names:
        return None
    shown = list_some(sorted(names))
    return Finding(
        False,
        SlurmNodeReason.SHARED,
        f"Several pods have the host name of one Slurm node: {shown}. Give them different names",
    )


def _names(workers: Iterable[Worker]) -> list[str]:
    return [worker.name for worker in workers]
