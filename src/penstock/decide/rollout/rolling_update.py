"""RollingUpdate, and ScheduledUpdate in its window: which pods of an older revision go now.

No more than `maxUnavailable` pods are unavailable at once, for whatever reason. These are every
wanted ordinal without a pod (missing or terminating), every pod that is not in service, new ones
above all, and every pod that the update replaces. The rest of the budget goes to pods of an older
revision: those that are not in service first, then idle ones, then busy ones, once their jobs end.

- A pod is in service when it is Ready (for minReadySeconds) and its own slurmd is in service in
  Slurm.
- A pod that is taken is marked first, so the next process goes on with the same pods. Once its node
  is drained it stays taken; one that got a job before the drain gives way to an idle one.
- New pods that never work use the budget up: the update stops. Pods that never worked and are of an
  older revision are replaced without a budget (`recreation.outdated`), so the next change recovers.
- A pod of an older revision whose slurmd waits for its first start is taken without a budget, too:
  Slurm may believe its node idle, as after a resume by hand, but nothing is lost with it.
- A node that somebody else drained is unavailable as well and is among the first to go: its drain
  is remembered and continues with the new pod. A pod that a user cordoned is unavailable and stays
  until the cordon is gone, which would be lost with the pod.
- In DaemonSet mode the pod of a Kubernetes node that takes no new one, as by a taint, stays: the
  node would be unavailable for as long as that lasts, and not count any more.
- While no pod can be made, or with another strategy, nothing is taken and what was is given back.
  With ScheduledUpdate only those count that `maintenance.replaceable_now` names.
- A pod of the other scaling mode counts as one of an older revision, and so does one in DaemonSet
  mode whose Slurm node gets another name; these go with any strategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from penstock.decide.observed.drain_reason import DrainCause
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.rollout import maintenance
from penstock.decide.rollout.budget import max_unavailable
from penstock.decide.scale import scale_in_order

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
    """`updating` workers go, in this order; of these `idle` have no job.

    `budget` is how many pods may be unavailable. `failing` are workers of the current revision that
    are not in service, `cordoned` outdated ones that a user's cordon keeps, `last_on_node` those
    whose Kubernetes node takes no new pod.
    """

    updating: tuple[Worker, ...] = ()
    idle: frozenset[Worker] = frozenset()
    budget: int = 0
    failing: tuple[Worker, ...] = ()
    cordoned: tuple[Worker, ...] = ()
    last_on_node: tuple[Worker, ...] = ()


def to_replace(
    view: WorkerSetView, observed: ObservedWorkers, workers: Sequence[Worker]
) -> list[Worker]:
    """Outdated workers, as far as the update strategy allows to replace them.

    Those of the other scaling mode or with a former Slurm node name go with any strategy.
    """
    old = observed.outdated_of(workers)
    if not old or view.workers.update.type == "RollingUpdate":
        return old
    free = frozenset[Worker]()
    if maintenance.is_scheduled(view.workers):
        free = maintenance.replaceable_now(view, old)
    return [worker for worker in old if worker in free or not worker.is_in_place]


def absent(observed: ObservedWorkers, kept: Sequence[Worker]) -> int:
    """How many wanted pods are missing, or terminating and not created again yet."""
    return observed.replicas - len(kept)


def is_in_service(worker: Worker, min_ready_seconds: int, now: float) -> bool:
    """Whether a worker is in service in both Kubernetes and Slurm."""
    if worker.available_in(min_ready_seconds, now) != 0:
        return False
    node = worker.node
    return node is not None and not node.state & _OUT and worker.is_registered


def rollout(view: WorkerSetView, observed: ObservedWorkers, kept: Sequence[Worker]) -> Rollout:
    """Decide on the workers that scale-in leaves: `kept`, of which there may be too few."""
    old = to_replace(view, observed, kept)
    if not old or not view.can_replace_pods:
        return Rollout()
    budget = max_unavailable(view.workers, observed.replicas)
    last: list[Worker] = []
    cordoned: list[Worker] = []
    going: list[Worker] = []
    rest: list[Worker] = []
    for worker in old:
        if observed.is_last_on_node(worker):
            last.append(worker)
        elif worker.is_cordoned_by_user:
            cordoned.append(worker)
        else:
            (going if _is_draining_for_update(worker) else rest).append(worker)
    if observed.slurm.unknown_reason is not None:
        return Rollout(
            tuple(going), budget=budget, cordoned=tuple(cordoned), last_on_node=tuple(last)
        )
    seconds = view.workers.min_ready_seconds
    serving = {worker for worker in kept if is_in_service(worker, seconds, view.now)}
    failing = [one for one in kept if one.is_current and one not in serving]
    free = budget - absent(observed, kept) - len(failing) - len(cordoned) - len(going)
    # Those whose time has not come are unavailable as well when they are not in service.
    taken = set(old)
    later = [worker for worker in observed.outdated_of(kept) if worker not in taken]
    free -= sum(1 for worker in (*last, *later) if worker not in serving)
    uses = {worker: _use(worker) if worker in serving else _Use.NONE for worker in rest}
    order = sorted(
        rest,
        key=lambda worker: (
            uses[worker],
            not _is_marked(worker),
            scale_in_order(view.workers.marks, worker),
        ),
    )
    dead = [worker for worker in order if worker.has_never_started]
    alive = [worker for worker in order if not worker.has_never_started]
    chosen = (*dead, *alive[: max(0, free - len(dead))])
    return Rollout(
        (*going, *chosen),
        frozenset(worker for worker in chosen if uses[worker] is _Use.IDLE),
        budget,
        tuple(failing),
        tuple(cordoned),
        tuple(last),
    )


def _is_marked(worker: Worker) -> bool:
    """Whether its mark shows that an update takes it."""
    return worker.cordon_cause == DrainCause.UPDATE


def _is_draining_for_update(worker: Worker) -> bool:
    """Whether it is marked, and its node drained or not known to be in use."""
    return _is_marked(worker) and (worker.node is None or worker.node.drain)


def _use(worker: Worker) -> _Use:
    return _Use.BUSY if worker.is_busy else _Use.IDLE
