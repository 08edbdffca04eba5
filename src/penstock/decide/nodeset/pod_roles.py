"""Which pods stay, which go and which are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from penstock.api.kubernetes.kinds import Pod
from penstock.decide import ordinals
from penstock.decide.drain.request import DrainCause
from penstock.decide.observed.pod import is_daemon
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.placement import node_pins as pins
from penstock.decide.placement.daemonset import place
from penstock.decide.rollout.rolling_update import Rollout, rollout
from penstock.decide.scale import pods_to_scale_in
from penstock.model.worker_names import WorkerNames
from penstock.model.worker_slot import NodePlacements, WorkerSlot


@dataclass(frozen=True, slots=True)
class PodRoles:
    """Each pod has one role.

    `updating` are those that `update` takes: others of a newer template come in their place.
    `missing` are places without a pod, `name_conflicts` the pods of somebody else that have the
    name of one, `wanted` the names of all pods that shall be, and `cause` is why the `to_delete`
    go.
    """

    kept: tuple[Pod, ...] = ()
    to_delete: tuple[Pod, ...] = ()
    updating: tuple[Pod, ...] = ()
    terminating: tuple[Pod, ...] = ()
    missing: tuple[WorkerSlot, ...] = ()
    name_conflicts: tuple[Pod, ...] = ()
    wanted: frozenset[str] = frozenset()
    cause: DrainCause = DrainCause.SCALE_IN
    update: Rollout = field(default_factory=Rollout)


def assign(view: WorkerSetView, slurm: SlurmSnapshot) -> PodRoles:
    """Give each pod its role.

    A terminating pod keeps its place until it is gone, as in a StatefulSet: no two pods ever claim
    one Slurm node name. Pods of the other scaling mode go as an update goes, within its budget.
    Pods whose name has no ordinal are left as they are, and the deletion of the NodeSet takes them
    along.
    """
    terminating, alive = (), view.pods
    if view.aggregates.terminating:
        terminating = tuple(pod for pod in view.pods if pod.metadata.deleting)
        alive = tuple(pod for pod in view.pods if not pod.metadata.deleting)
    if view.deleting:
        return PodRoles(to_delete=alive, terminating=terminating, cause=DrainCause.DELETION)
    if view.places is not None:
        return _daemons(view, slurm, view.places, alive, terminating)
    foreign: tuple[Pod, ...] = ()
    own = alive
    marks = view.workers.marks
    if any(per_node for _, per_node in view.aggregates.by_revision):
        foreign = tuple(pod for pod in alive if is_daemon(marks, pod))
        own = tuple(pod for pod in alive if not is_daemon(marks, pod))

    numbers = view.aggregates.ordinals
    sized = own
    if len(numbers) < len(view.pods):
        sized = tuple(pod for pod in own if pod.metadata.name in numbers)
    gone = pods_to_scale_in(view, sized, len(sized) - view.replicas, slurm)
    names_gone = {pod.metadata.name for pod in gone}
    stays = tuple(p for p in sized if p.metadata.name not in names_gone) if gone else sized
    update = rollout(view, slurm, (*stays, *foreign))
    names_gone |= {pod.metadata.name for pod in update.condemned}
    kept = tuple(p for p in alive if p.metadata.name not in names_gone) if names_gone else alive
    used = staying = frozenset(numbers.values())
    if len(stays) < len(view.pods):
        staying = {numbers[pod.metadata.name] for pod in stays}
    wanted = ordinals.wanted(view.replicas, staying)
    others = {pod.metadata.name: pod for pod in view.others}
    unused = [number for number in wanted if number not in used]
    pinned = pins.pins(view) if unused else dict[str, str]()
    free = [_slot(view.workers.names, number, pinned) for number in unused]
    return PodRoles(
        kept=kept,
        to_delete=gone,
        updating=update.condemned,
        terminating=terminating,
        missing=tuple(slot for slot in free if slot.pod not in others),
        name_conflicts=tuple(others[slot.pod] for slot in free if slot.pod in others),
        wanted=_named(view.workers.names, wanted) | _names(view, kept),
        update=update,
    )


def _daemons(
    view: WorkerSetView,
    slurm: SlurmSnapshot,
    places: NodePlacements,
    alive: tuple[Pod, ...],
    terminating: tuple[Pod, ...],
) -> PodRoles:
    """The roles in DaemonSet mode: no place, no pod; the rest is as in the other mode."""
    daemons: Sequence[Pod] = alive
    foreign: tuple[Pod, ...] = ()
    if view.aggregates.daemons < len(view.pods):
        marks = view.workers.marks
        daemons = [pod for pod in alive if is_daemon(marks, pod)]
        foreign = tuple(pod for pod in alive if not is_daemon(marks, pod))
    own = place(view, places, daemons)
    stays = (*own.kept, *foreign)
    update = rollout(view, slurm, stays)
    names_gone = {pod.metadata.name for pod in update.condemned}
    kept = stays
    if names_gone:
        kept = tuple(pod for pod in stays if pod.metadata.name not in names_gone)
    others = {pod.metadata.name: pod for pod in view.others}
    return PodRoles(
        kept=kept,
        to_delete=own.surplus,
        updating=update.condemned,
        terminating=terminating,
        missing=tuple(slot for slot in own.missing if slot.pod not in others),
        name_conflicts=tuple(others[slot.pod] for slot in own.missing if slot.pod in others),
        wanted=_names(view, kept).union(slot.pod for slot in places.slots),
        update=update,
    )


def _names(view: WorkerSetView, kept: tuple[Pod, ...]) -> frozenset[str]:
    if len(kept) == len(view.pods):
        return view.aggregates.names
    return frozenset(pod.metadata.name for pod in kept)


def _slot(names: WorkerNames, number: int, pinned: Mapping[str, str]) -> WorkerSlot:
    machine = pinned.get(str(number), "")
    return WorkerSlot(names.pod(number), names.host(number), number, machine)


@lru_cache(maxsize=64)
def _named(names: WorkerNames, numbers: tuple[int, ...]) -> frozenset[str]:
    """Names of pods; a set that does not change its size has the same ones each time."""
    return frozenset(map(names.pod, numbers))
