"""Workers that run and have no record in Slurm, and how they get one again.

slurmd registers when it starts, and when slurmctld asks it to. A slurmctld that lost its state asks
nobody, so its workers would stay away until somebody restarts them. Their slurmd is led to register
again, in the pod and with the jobs that it has; see `penstock.slurm.rest.node_registration`.

Where that is not possible, as slurmrestd is older than Slurm 25.11, the pods are replaced, at most
`maxUnavailable` at once. With strategy OnDelete users replace them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.api.kubernetes.kinds import Pod
from penstock.decide.action import DeletionGround, EventReason, RegisterNode, RemoveStandIns
from penstock.decide.drain import request as drain
from penstock.decide.drain.deletion_guard import can_delete
from penstock.decide.observed.pod import slurm_node_name, slurmd_started_at
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.placement.daemonset import is_last_on_node
from penstock.decide.rollout.rolling_update import can_replace, max_unavailable
from penstock.slurm.daemons import SLURMD_PORT
from penstock.slurm.stand_in import stand_ins

STARTS_S = 30.0
"""How long slurmd has to register by itself after its start."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What to do now, and seconds until the next worker has had its time to register by itself."""

    actions: tuple[RegisterNode | RemoveStandIns, ...] = ()
    wake: float | None = None


def registration(view: WorkerSetView, slurm: SlurmSnapshot) -> Registration:
    """Which workers are to register again: those that run and are not in Slurm's known list.

    Pods that are to go count as well: only a node that Slurm has can be drained and then deleted.
    """
    if slurm.unknown_reason is not None or view.is_orphaned:
        return Registration()
    left = stand_ins(slurm.records)
    actions: list[RegisterNode | RemoveStandIns] = [RemoveStandIns(left)] if left else []
    waits: list[float] = []
    if not view.aggregates.slurm_nodes <= slurm.records.keys():
        for pod in view.pods:
            wait = _registers_in(pod, slurm, view)
            if wait == 0:
                actions.append(_register(pod, view))
            elif wait is not None:
                waits.append(wait)
    return Registration(tuple(actions), min(waits, default=None))


def to_replace(view: WorkerSetView, slurm: SlurmSnapshot, kept: Sequence[Pod]) -> tuple[Pod, ...]:
    """Which of the `kept` pods go now, as their slurmd cannot be led to register again.

    Out are pods that are wanted and not Ready, which replaced ones are until their slurmd starts. A
    pod that a user cordoned stays, and one whose machine takes no new pod.
    """
    if view.cannot_register is None or slurm.unknown_reason is not None or not can_replace(view):
        return ()
    if view.workers.update.type == "OnDelete":
        return ()
    ready = sum(1 for pod in kept if pod.ready and not pod.metadata.deleting)
    free = max_unavailable(view.workers, view.replicas) - (view.replicas - ready)
    due = [
        pod
        for pod in kept
        if _registers_in(pod, slurm, view) == 0
        and not drain.is_cordoned_by_user(view.workers.marks, pod, None)
        and not is_last_on_node(view, pod)
        and can_delete(pod, slurm, forgotten=True).ground is DeletionGround.FORGOTTEN
    ]
    return tuple(due[: max(0, free)])


def _registers_in(pod: Pod, slurm: SlurmSnapshot, view: WorkerSetView) -> float | None:
    """Seconds until the worker has to be led to register, None when it has not."""
    name = slurm_node_name(pod)
    if pod.metadata.deleting or not pod.ready or not pod.status.pod_ip:
        return None
    if name in slurm.records or name in view.aggregates.shared_slurm_nodes:
        return None
    began = slurmd_started_at(pod)
    return None if began is None else max(0.0, began + STARTS_S - view.now)


def _register(pod: Pod, view: WorkerSetView) -> RegisterNode:
    name = slurm_node_name(pod)
    why = EventReason(
        "SlurmNodeRegistered", f"Node {name} registered again: Slurm had no record of it"
    )
    return RegisterNode(name, pod.status.pod_ip or "", _port(view.workers.parameters), why)


def _port(extra_conf: str) -> int:
    """Where slurmd listens. Source: slurm.conf(5), NODE CONFIGURATION, Port."""
    for word in extra_conf.split():
        key, _, value = word.strip("'\"").partition("=")
        if key.lower() == "port" and value.isdecimal():
            return int(value)
    return SLURMD_PORT
