"""What a user is told about a NodeSet: each thing that is wrong or waited for, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.base.text import list_some
from penstock.decide.action import TopologyRejection
from penstock.decide.drain import request as drain
from penstock.decide.drain.deletion_guard import DeletionVerdict
from penstock.decide.nodeset import pvc as claims
from penstock.decide.nodeset.pod_roles import PodRoles
from penstock.decide.nodeset.status import available_in, old_ones
from penstock.decide.observed.pod import kubernetes_node_name, slurm_node_name, slurmd_container
from penstock.decide.observed.pod_failure import PodFailure, next_step, pod_failure
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import PATIENCE_S, ControllerState, WorkerSetView
from penstock.decide.rollout.maintenance import scheduled
from penstock.decide.slurm_node import topology

_WAITS = (
    "SlurmUnknown",
    "NodeNotRegistered",
    "JobsRunning",
    "NodeBusy",
    "NodeUnknown",
    "NotDrained",
)
"""Reasons of the guard, the one that a user can do something about first."""


def findings(
    view: WorkerSetView,
    slurm: SlurmSnapshot,
    roles: PodRoles,
    held: Mapping[str, DeletionVerdict],
    refused: Mapping[str, TopologyRejection],
    planned: Finding | None = None,
) -> tuple[Finding, ...]:
    """All findings, the gravest first; one that is ok when there is nothing else.

    `held` says for each condemned pod that stays for now why it does, `refused` which nodes are not
    where their machines say that they are.
    """
    found = (
        _controller(view),
        _creation(view, roles),
        _places(view),
        _claims(view, roles),
        _taken(view, roles),
        _deleting(view, roles),
        _waiting(roles, held),
        _terminating(roles),
        _not_ready(view, roles),
        _not_available(view, roles),
        None if view.deleting else topology.finding(view.workers.marks, refused),
        _silent(view, slurm),
        _not_registered(view, roles, slurm),
        _updating(view, roles, held),
        planned,
        _old_revision(view, roles),
        _nowhere(view),
    )
    said = tuple(finding for finding in found if finding is not None)
    if any(finding.ok is not True for finding in said):
        return said
    kept = len(roles.kept)
    return (Finding(True, "PodsReady", f"{kept} of {view.replicas} pods are ready"), *said)


def _places(view: WorkerSetView) -> Finding | None:
    """Machines that fit and get no pod."""
    if view.places is None or not view.places.problems:
        return None
    told = [f"{machine}: {why}" for machine, why in view.places.problems.items()]
    return Finding(
        False,
        "HostnameInvalid",
        f"{len(told)} Kubernetes nodes get no pod of that name: {list_some(told, '; ')}. Correct "
        f"their annotation {view.workers.marks.hostname}",
    )


def _claims(view: WorkerSetView, roles: PodRoles) -> Finding | None:
    """Pods that are not made, since their claims are on their way out."""
    held = claims.going(view, roles.missing)
    if not held:
        return None
    told = list_some([f"{pod} for {claim}" for pod, claim in held.items()])
    message = f"{len(held)} pods wait until claims of former pods are gone: {told}"
    return Finding(None, "ClaimsTerminating", message)


def _nowhere(view: WorkerSetView) -> Finding | None:
    """Whether there is no machine at all for it, which may be meant so."""
    if view.places is None or view.places.slots or view.places.problems:
        return None
    return Finding(
        True,
        "NoNodeFits",
        f"None of {len(view.kubernetes_nodes)} Kubernetes nodes fits nodeSelector, affinity and "
        f"tolerations of {view.workers.wording.template_field}",
    )


def _controller(view: WorkerSetView) -> Finding | None:
    workers = view.workers
    of = f"{workers.wording.cluster_kind} {workers.cluster}"
    if view.controller is ControllerState.PRESENT:
        return None
    if view.deleting:
        return Finding(None, "ControllerGone", f"{of} is gone or going: {_going(view)}")
    if view.controller is ControllerState.DELETING:
        return Finding(False, "ControllerDeleting", f"{of} is being deleted")
    return Finding(
        False,
        "ControllerNotFound",
        f"{workers.wording.cluster_field}: there is no {of}; no pods are made before it",
    )


def _going(view: WorkerSetView) -> str:
    """What becomes of pods whose NodeSet goes with its Controller."""
    if view.external is None or view.is_orphaned:
        return "pods are deleted without being drained"
    since = view.silent_since
    if since is None:
        return (
            "slurmctld is outside and goes on, so each pod is deleted once its Slurm node is "
            "drained and empty"
        )
    meta, end = view.workers.metadata, times.write(since + PATIENCE_S)
    chosen = view.workers.selector_text
    return (
        f"slurmctld is outside and cannot be asked since {times.write(since)}, so pods that may "
        f"have jobs stay until {end}. To end the wait at once: kubectl delete pods "
        f"-n {meta.namespace} -l {chosen}"
    )


def _creation(view: WorkerSetView, roles: PodRoles) -> Finding | None:
    if not roles.missing or view.controller is not ControllerState.PRESENT:
        return None
    if view.creation_blocked is not None:
        return view.creation_blocked
    names = list_some([slot.pod for slot in roles.missing])
    return Finding(None, "CreatingPods", f"Creating {len(roles.missing)} pods: {names}")


def _taken(view: WorkerSetView, roles: PodRoles) -> Finding | None:
    if not roles.name_conflicts:
        return None
    names = list_some([_owned(pod) for pod in roles.name_conflicts])
    return Finding(
        False,
        "PodNameTaken",
        f"Pods have names that this {view.workers.kind} needs and are not its own: {names}. Delete "
        "or rename them",
    )


def _owned(pod: Pod) -> str:
    owner = pod.metadata.controller
    return f"{pod.metadata.name} ({f'of {owner.kind} {owner.name}' if owner else 'without owner'})"


def _deleting(view: WorkerSetView, roles: PodRoles) -> Finding | None:
    if not view.deleting:
        return None
    left = len(roles.to_delete) + len(roles.terminating)
    return Finding(None, "Deleting", f"Being deleted; {left} pods are left to drain and delete")


def _waiting(roles: PodRoles, held: Mapping[str, DeletionVerdict]) -> Finding | None:
    waiting = [(p, held[p.metadata.name]) for p in roles.to_delete if p.metadata.name in held]
    if not waiting:
        return None
    reasons = {verdict.why.reason for _, verdict in waiting}
    reason = next((known for known in _WAITS if known in reasons), min(reasons))
    shown = [_held(pod, verdict) for pod, verdict in waiting]
    return Finding(
        None, reason, f"{len(waiting)} pods wait to be deleted: {list_some(shown, '; ')}"
    )


def _held(pod: Pod, verdict: DeletionVerdict) -> str:
    since = drain.deletion_requested_at(pod)
    told = f"{pod.metadata.name}{f' since {since}' if since else ''}: {verdict.why.message}"
    if verdict.why.reason == "NodeNotRegistered":
        told += "; if it cannot have jobs, delete the pod by hand"
    return told


def _terminating(roles: PodRoles) -> Finding | None:
    if not roles.terminating:
        return None
    names = list_some([pod.metadata.name for pod in roles.terminating])
    return Finding(
        None, "PodsTerminating", f"{len(roles.terminating)} pods are terminating: {names}"
    )


def _not_ready(view: WorkerSetView, roles: PodRoles) -> Finding | None:
    if view.deleting:
        return None
    waiting: list[PodFailure] = []
    if view.aggregates.ready < len(view.pods):
        waiting = [_told(pod) for pod in roles.kept if not pod.ready]
    if not waiting:
        return None
    broken = [one for one in waiting if one.needs_action]
    names = list_some([one.text for one in broken or waiting], "; ")
    message = f"{len(waiting)} of {view.replicas} pods are not ready: {names}"
    message += next_step(view.workers.images, broken)
    return (
        Finding(False, "PodsFailing", message) if broken else Finding(None, "PodsNotReady", message)
    )


def _told(pod: Pod) -> PodFailure:
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
    young = [p.metadata.name for p in roles.kept if (available_in(p, seconds, view.now) or 0) > 0]
    if not young:
        return None
    message = f"{len(young)} pods are ready for less than {seconds} s: {list_some(young)}"
    return Finding(None, "PodsNotAvailable", message)


def _silent(view: WorkerSetView, slurm: SlurmSnapshot) -> Finding | None:
    if slurm.unknown_reason is None or view.deleting or not any(pod.ready for pod in view.pods):
        return None
    message = (
        f"Slurm's state is not known ({slurm.unknown_reason}): nothing is drained or deleted by it"
    )
    return Finding(None, "SlurmUnknown", message)


def _not_registered(view: WorkerSetView, roles: PodRoles, slurm: SlurmSnapshot) -> Finding | None:
    known = slurm.records
    if slurm.unknown_reason is not None or view.aggregates.slurm_nodes <= known.keys():
        return None
    names = _names(p for p in roles.kept if p.ready and slurm_node_name(p) not in known)
    if not names:
        return None
    message = f"{len(names)} ready pods are not known to Slurm: {list_some(names)}. "
    if view.cannot_register is None:
        message += "They are led to register again"
    else:
        by_hand = view.workers.update.type == "OnDelete"
        then = "delete them" if by_hand else "they are replaced within maxUnavailable"
        message += f"They cannot be led to register again ({view.cannot_register}): {then}"
    return Finding(None, "SlurmNodeNotRegistered", message)


def _updating(
    view: WorkerSetView, roles: PodRoles, held: Mapping[str, DeletionVerdict]
) -> Finding | None:
    """How far an update is, and what it waits for."""
    update = roles.update
    if not update.budget:
        return None
    done = len(roles.kept) - len(old_ones(view, roles.kept))
    told = f"{done} of {view.replicas} pods have the new template, {update.budget} may be out"
    shown = [
        _held(pod, held[pod.metadata.name]) for pod in update.condemned if pod.metadata.name in held
    ]
    shown += [f"{pod.metadata.name} is new and not in use yet" for pod in update.failing]
    shown += [f"{pod.metadata.name} is cordoned by a user and stays" for pod in update.cordoned]
    shown += [
        f"{pod.metadata.name} stays, as {kubernetes_node_name(pod)} takes no new pod"
        for pod in update.last_on_node
    ]
    return Finding(None, "RollingUpdate", f"{told}: {list_some(shown, '; ')}" if shown else told)


def _old_revision(view: WorkerSetView, roles: PodRoles) -> Finding | None:
    names = _names(old_ones(view, roles.kept))
    if not names or view.deleting or roles.update.budget or scheduled(view.workers):
        return None
    message = (
        f"{len(names)} pods have an older template and keep it until they are deleted: "
        f"{list_some(names)}"
    )
    return Finding(True, "OldRevision", message)


def _names(pods: Iterable[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]
