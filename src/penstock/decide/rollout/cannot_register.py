"""Workers that Slurm has forgotten and that cannot register again: their pods are replaced.

At most `maxUnavailable` at once; with strategy OnDelete users replace them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock.decide.action import DeletionGround
from penstock.decide.drain.deletion_guard import can_delete
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.rollout.budget import max_unavailable


def to_replace(
    view: WorkerSetView,
    observed: ObservedWorkers,
    kept: Sequence[Worker],
    due: Collection[Worker],
) -> tuple[Worker, ...]:
    """The workers to replace now, of those `kept` that are `due` to register.

    Pods that are needed and not ready count against the budget, as replaced ones do until their
    slurmd starts. A pod that a user cordoned stays, and one whose Kubernetes node takes no new pod.
    """
    if view.cannot_register is None or not due or not view.can_replace_pods:
        return ()
    if view.workers.update.type == "OnDelete":
        return ()
    ready = sum(1 for worker in kept if worker.is_ready and not worker.is_terminating)
    free = max_unavailable(view.workers, observed.replicas) - (observed.replicas - ready)
    found = [
        worker
        for worker in kept
        if worker in due
        and not worker.is_cordoned_by_user
        and not observed.is_last_on_node(worker)
        and _is_forgotten(worker, observed)
    ]
    return tuple(found[: max(0, free)])


def _is_forgotten(worker: Worker, observed: ObservedWorkers) -> bool:
    verdict = can_delete(worker.pod, observed.slurm, forgotten=True)
    return verdict.ground is DeletionGround.FORGOTTEN
