"""Which pods stay, which go and which are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from penstock.api.kubernetes.kinds import Pod
from penstock.decide import ordinals
from penstock.decide.observed.drain_reason import DrainCause
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.placement import node_pins
from penstock.decide.placement.daemonset import assign_places
from penstock.decide.rollout.rolling_update import Rollout, rollout
from penstock.decide.scale import workers_to_scale_in
from penstock.model.worker_names import WorkerNames
from penstock.model.worker_slot import NodePlacements, WorkerSlot


@dataclass(frozen=True, slots=True)
class PodRoles:
    """Each worker has one role.

    `updating` are those that `update` replaces. `missing` are places without a pod,
    `name_conflicts` the pods of other owners that have the name of one, `wanted` the names of all
    pods that must exist, and `cause` is why the `to_delete` go. `takes_idle` is whether some of
    them were chosen just now, by what Slurm knows of all.
    """

    kept: tuple[Worker, ...] = ()
    to_delete: tuple[Worker, ...] = ()
    updating: tuple[Worker, ...] = ()
    terminating: tuple[Worker, ...] = ()
    missing: tuple[WorkerSlot, ...] = ()
    name_conflicts: tuple[Pod, ...] = ()
    wanted: frozenset[str] = frozenset()
    cause: DrainCause = DrainCause.SCALE_IN
    update: Rollout = field(default_factory=Rollout)
    takes_idle: bool = False


def assign_roles(view: WorkerSetView, observed: ObservedWorkers) -> PodRoles:
    """Give each worker its role.

    A terminating pod keeps its place until it is gone, as in a StatefulSet: no two pods ever claim
    one Slurm node name. Pods of the other scaling mode are replaced as by an update, within its
    budget. Pods whose name has no ordinal stay until the deletion of the NodeSet.
    """
    terminating, alive = (), observed.all
    if observed.aggregates.terminating:
        terminating = tuple(worker for worker in observed.all if worker.is_terminating)
        alive = tuple(worker for worker in observed.all if not worker.is_terminating)
    if view.deleting:
        return PodRoles(to_delete=alive, terminating=terminating, cause=DrainCause.DELETION)
    if observed.placements is not None:
        return _per_node(view, observed, observed.placements, alive, terminating)
    other_mode: tuple[Worker, ...] = ()
    own = alive
    if observed.aggregates.daemons:
        other_mode = tuple(worker for worker in alive if worker.is_per_node)
        own = tuple(worker for worker in alive if not worker.is_per_node)

    numbers = observed.aggregates.ordinals
    sized = own
    if len(numbers) < len(view.pods):
        sized = tuple(worker for worker in own if worker.ordinal is not None)
    powered = view.workers.powered
    if powered is None:
        surplus = len(sized) - observed.replicas
        to_delete = workers_to_scale_in(view.workers.marks, sized, surplus)
    else:
        to_delete = tuple(worker for worker in sized if worker.ordinal not in powered)
    stays = _without(sized, to_delete)
    update = rollout(view, observed, (*stays, *other_mode))
    kept = _without(alive, (*to_delete, *update.updating))
    used = staying = frozenset(numbers.values())
    if len(stays) < len(view.pods):
        staying = frozenset(one.ordinal for one in stays if one.ordinal is not None)
    wanted = tuple(sorted(powered or ()))
    if powered is None:
        wanted = ordinals.wanted(observed.replicas, staying)
    unused = [number for number in wanted if number not in used]
    pinned = node_pins.pins(view, observed.all) if unused else dict[str, str]()
    free = tuple(_slot(view.workers.names, number, pinned) for number in unused)
    others = {pod.metadata.name: pod for pod in view.others}
    return PodRoles(
        kept=kept,
        to_delete=to_delete,
        updating=update.updating,
        terminating=terminating,
        missing=tuple(slot for slot in free if slot.pod not in others),
        name_conflicts=tuple(others[slot.pod] for slot in free if slot.pod in others),
        wanted=_names_of(view.workers.names, wanted) | _pods(observed, kept),
        update=update,
        takes_idle=powered is None
        and bool(stays)
        and any(one.deletion_requested_at is None for one in to_delete),
    )


def _per_node(
    view: WorkerSetView,
    observed: ObservedWorkers,
    placements: NodePlacements,
    alive: tuple[Worker, ...],
    terminating: tuple[Worker, ...],
) -> PodRoles:
    """The roles in DaemonSet mode: no place, no pod; the rest is as in the other mode."""
    own = alive
    other_mode: tuple[Worker, ...] = ()
    if observed.aggregates.daemons < len(view.pods):
        own = tuple(worker for worker in alive if worker.is_per_node)
        other_mode = tuple(worker for worker in alive if not worker.is_per_node)
    placed = assign_places(observed, placements, own)
    stays = (*placed.kept, *other_mode)
    update = rollout(view, observed, stays)
    kept = _without(stays, update.updating)
    others = {pod.metadata.name: pod for pod in view.others}
    return PodRoles(
        kept=kept,
        to_delete=placed.surplus,
        updating=update.updating,
        terminating=terminating,
        missing=tuple(slot for slot in placed.missing if slot.pod not in others),
        name_conflicts=tuple(others[slot.pod] for slot in placed.missing if slot.pod in others),
        wanted=_pods(observed, kept).union(slot.pod for slot in placements.slots),
        update=update,
    )


def _without(workers: tuple[Worker, ...], gone: tuple[Worker, ...]) -> tuple[Worker, ...]:
    if not gone:
        return workers
    left_out = frozenset(gone)
    return tuple(worker for worker in workers if worker not in left_out)


def _pods(observed: ObservedWorkers, kept: tuple[Worker, ...]) -> frozenset[str]:
    if len(kept) == len(observed.all):
        return observed.aggregates.names
    return frozenset(worker.name for worker in kept)


def _slot(names: WorkerNames, number: int, pinned: Mapping[str, str]) -> WorkerSlot:
    return WorkerSlot(names.pod(number), names.host(number), number, pinned.get(str(number), ""))


@lru_cache(maxsize=64)
def _names_of(names: WorkerNames, numbers: tuple[int, ...]) -> frozenset[str]:
    """Names of pods; a set that does not change its size has the same ones each time."""
    return frozenset(map(names.pod, numbers))
