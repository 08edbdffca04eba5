"""The finalizer that keeps slurmrestd of an external slurmctld until workers are drained by it.

`helm uninstall` and `kubectl delete -f` delete Controller, NodeSets and RestApi within a moment,
and an external slurmctld with its jobs goes on. Without slurmrestd nobody could ask it whether a
worker is empty.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.api.cluster.marks import DRAIN_FINALIZER
from penstock.base import times
from penstock.model.worker_set import WorkerSet

GRACE_S = 10.0
"""How long a deleted RestApi waits for the deletion of NodeSets, which may come after its own."""
AGAIN_S = 2.0
"""Between two checks while a NodeSet is drained."""


def needed_for(
    deleted_at: str | None, worker_sets: Iterable[tuple[WorkerSet, int]], now: float
) -> tuple[float, str] | None:
    """Seconds until the next check and the NodeSets it is kept for; None when it may go.

    `deleted_at` is the deletion timestamp of the RestApi. `worker_sets` are those of its cluster,
    each with its number of pods. `now` is Unix seconds.
    """
    staffed = [one for one, pods in worker_sets if one.last.external and (pods or _is_ending(one))]
    draining = sorted(one.metadata.name for one in staffed if one.metadata.deleting)
    if draining:
        return AGAIN_S, ", ".join(draining)
    deleted = times.parse(deleted_at)
    left = (deleted if deleted is not None else now) + GRACE_S - now
    if staffed and 0 < left <= GRACE_S:
        return left, ""
    return None


def _is_ending(workers: WorkerSet) -> bool:
    """Whether a deleted worker set without pods may still have records in slurmctld."""
    return workers.metadata.deleting and DRAIN_FINALIZER in workers.metadata.finalizers
