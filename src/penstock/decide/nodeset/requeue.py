"""When the next decision is due although nothing changes."""

from __future__ import annotations

from penstock.decide.nodeset.finalizer import patience_in
from penstock.decide.observed.deletion import deletion_of
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.rollout.recreation import recreate_after


def requeue_after(view: WorkerSetView, observed: ObservedWorkers) -> float | None:
    """Seconds until time alone changes what is decided about pods or the deletion of the set."""
    seconds, now = view.workers.min_ready_seconds, view.now
    waits: list[float | None] = [patience_in(view)]
    if observed.aggregates.ended:
        waits += [recreate_after(worker, now) for worker in observed.all]
    if seconds > 0:
        waits += [worker.available_in(seconds, now) for worker in observed.all]
    if view.pods:
        waits.append(deletion_of(view).patience)
    return min(filter(None, waits), default=None)
