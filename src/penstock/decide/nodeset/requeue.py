"""When the next decision is due although nothing changes."""

from __future__ import annotations

from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.rollout.recreation import recreate_after


def requeue_after(view: WorkerSetView, observed: ObservedWorkers) -> float | None:
    """Seconds until time alone changes what is decided about pods or the deletion of the set."""
    seconds, now = view.workers.min_ready_seconds, view.now
    waits: list[float | None] = [observed.deletion.records_patience]
    if observed.aggregates.ended:
        waits += [recreate_after(worker, now) for worker in observed.all]
    if seconds > 0:
        waits += [worker.available_in(seconds, now) for worker in observed.all]
    if view.pods:
        waits.append(observed.deletion.patience)
    return min(filter(None, waits), default=None)
