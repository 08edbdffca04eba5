"""RollingUpdate, and ScheduledUpdate in its window: which pods of an older revision go now.

No more than `maxUnavailable` pods are out at once, for whatever reason. Out is every wanted ordinal
without a pod (missing or terminating), every pod that does not work, new ones above all, and every
pod that the update takes. What is left of the budget goes to pods of an older revision: those that
do not work first, then idle ones, and busy ones when no other is left; a job is waited for.

- A pod works when it is Ready (for minReadySeconds) and its own slurmd is in service in Slurm.
- A pod that is taken is marked first, so the next process goes on with the same pods. Once its node
  is drained it stays taken; one that got a job before the drain gives way to an idle one.
- New pods that never work use the budget up: the update stops. Pods that never worked and are of an
  older revision are replaced without a budget (`remake.outdated`), so the next change recovers.
- A pod of an older revision whose slurmd waits for its first start is taken without a budget, too:
  Slurm may believe its node idle, as after a resume by hand, but nothing is lost with it.
- A node that somebody else drained is out, too, and is among the first to go: its drain is
  remembered and stands when the new pod is there. A pod that a user cordoned is out and stays as it
  is until the cordon is gone, which would be lost with the pod.
- In DaemonSet mode the pod of a machine that takes no new one, as by a taint, stays as it is: the
  machine would be out for as long as that lasts, and not count any more.
- While no pod can be made, or with another strategy, nothing is taken and what was is given back.
  With ScheduledUpdate only those count that `maintenance.replaceable_now` names.
- A pod of the other scaling mode counts as one of an older revision, and so does one in DaemonSet
  mode whose Slurm node shall be called otherwise; these go with any strategy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from penstock.api.kubernetes.kinds import Pod
from penstock.decide.drain import request as drain
from penstock.decide.drain.resume import is_registered
from penstock.decide.nodeset.status import available_in, current, in_place, old_ones
from penstock.decide.observed.pod import has_never_started, slurm_node_name
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.decide.placement.daemonset import is_last_on_node
from penstock.decide.rollout import maintenance
from penstock.decide.scale import scale_in_order
from penstock.model.worker_set import WorkerSet
from penstock.slurm.state import Node

_OUT = frozenset(
    {"DOWN", "ERROR", "FAIL", "FUTURE", "INVALID_REG", "NOT_RESPONDING", "UNKNOWN", "DRAIN"}
)
"""States in which a node gets no jobs, or may not keep them."""


class _Use(IntEnum):
    """What is lost when a pod goes; the least goes first."""

    NONE = 0
    IDLE = 1
    BUSY = 2


@dataclass(frozen=True, slots=True)
class Rollout:
    """`condemned` pods go, in this order; of these `idle` are the names of those without a job.

    `budget` is how many pods may be out. `failing` are pods of the wanted revision that do not
    work, `cordoned` older ones that a user's cordon keeps, `last_on_node` those whose machine takes
    no new one.
    """

    condemned: tuple[Pod, ...] = ()
    idle: frozenset[str] = frozenset()
    budget: int = 0
    failing: tuple[Pod, ...] = ()
    cordoned: tuple[Pod, ...] = ()
    last_on_node: tuple[Pod, ...] = ()


def max_unavailable(workers: WorkerSet, wanted: int) -> int:
    """How many pods may be out: percentages are of those wanted and rounded up; at least 1."""
    most = workers.update.max_unavailable
    if isinstance(most, str):
        most = math.ceil(wanted * int(most.removesuffix("%")) / 100)
    return max(1, most)


def can_replace(view: WorkerSetView) -> bool:
    """Whether pods are replaced at all: only while another could be made in one's place."""
    return (
        view.controller is ControllerState.PRESENT
        and view.creation_blocked is None
        and not view.deleting
    )


def to_replace(view: WorkerSetView, pods: Iterable[Pod]) -> list[Pod]:
    """Pods that are not as wanted, as far as the strategy lets us take them.

    What is of the other scaling mode, or called as its machine no more, goes with any strategy.
    """
    old = old_ones(view, pods)
    if not old or view.workers.update.type == "RollingUpdate":
        return old
    free = (
        maintenance.replaceable_now(view, old)
        if maintenance.scheduled(view.workers)
        else frozenset[str]()
    )
    return [pod for pod in old if pod.metadata.name in free or not in_place(view, pod)]


def absent(view: WorkerSetView, kept: Sequence[Pod]) -> int:
    """How many wanted pods are not there: missing, or terminating and not made again yet."""
    return view.replicas - len(kept)


def is_in_service(view: WorkerSetView, slurm: SlurmSnapshot, pod: Pod) -> bool:
    """Whether a pod is in use: by Kubernetes' word and by Slurm's."""
    if available_in(pod, view.workers.min_ready_seconds, view.now) != 0:
        return False
    node = slurm.node(slurm_node_name(pod))
    return node is not None and not node.state & _OUT and is_registered(pod, node)


def rollout(view: WorkerSetView, slurm: SlurmSnapshot, kept: Sequence[Pod]) -> Rollout:
    """Decide on the pods that scale-in leaves: `kept`, of which there may be too few."""
    old = to_replace(view, kept)
    if not old or not can_replace(view):
        return Rollout()
    budget = max_unavailable(view.workers, view.replicas)
    last: list[Pod] = []
    left: list[Pod] = []
    going: list[Pod] = []
    rest: list[Pod] = []
    for pod in old:
        if is_last_on_node(view, pod):
            last.append(pod)
            continue
        node = slurm.node(slurm_node_name(pod))
        cordoned = drain.is_cordoned_by_user(view.workers.marks, pod, node)
        (left if cordoned else going if _under_way(pod, node) else rest).append(pod)
    if slurm.unknown_reason is not None:
        return Rollout(tuple(going), budget=budget, cordoned=tuple(left), last_on_node=tuple(last))
    broken = [pod for pod in kept if current(view, pod) and not is_in_service(view, slurm, pod)]
    free = budget - absent(view, kept) - len(broken) - len(left) - len(going)
    # Those whose time has not come are out as well when they do not work.
    taken = {pod.metadata.uid for pod in old}
    later = [pod for pod in old_ones(view, kept) if pod.metadata.uid not in taken]
    free -= sum(1 for pod in (*last, *later) if not is_in_service(view, slurm, pod))
    uses = {pod.metadata.name: _use(view, slurm, pod) for pod in rest}
    order = sorted(
        rest,
        key=lambda pod: (
            uses[pod.metadata.name],
            not drain.is_marked_for_update(pod),
            scale_in_order(view, pod, slurm),
        ),
    )
    dead = [pod for pod in order if has_never_started(pod)]
    alive = [pod for pod in order if not has_never_started(pod)]
    chosen = (*dead, *alive[: max(0, free - len(dead))])
    idle = (name for pod in chosen if uses[name := pod.metadata.name] is _Use.IDLE)
    condemned = (*going, *chosen)
    return Rollout(condemned, frozenset(idle), budget, tuple(broken), tuple(left), tuple(last))


def _under_way(pod: Pod, node: Node | None) -> bool:
    """Whether it is taken for good: marked, and its node drained or not known to be in use."""
    return drain.is_marked_for_update(pod) and (node is None or node.drain)


def _use(view: WorkerSetView, slurm: SlurmSnapshot, pod: Pod) -> _Use:
    if not is_in_service(view, slurm, pod):
        return _Use.NONE
    name = slurm_node_name(pod)
    node = slurm.node(name)
    busy = bool(slurm.jobs(name)) or (node is not None and node.busy)
    return _Use.BUSY if busy else _Use.IDLE
