"""Pods to recreate: those that ended, and outdated ones that never started.

A pod ends when it is evicted or the kubelet rejects it.
"""

from __future__ import annotations

from penstock.base import times
from penstock.decide.action import DeletionGround
from penstock.decide.drain.deletion_guard import can_delete
from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers

PAUSE_S = 10.0
"""Shortest life of a pod that is recreated at once. A kubelet may reject each pod immediately; it
must not get new ones at full speed."""

_USELESS = (DeletionGround.NEVER_BOUND, DeletionGround.NEVER_STARTED, DeletionGround.STOPPED)


def recreate_after(worker: Worker, now: float) -> float | None:
    """Seconds until an ended pod may be deleted to be created again, None for any other."""
    if not worker.is_finished or worker.is_terminating:
        return None
    created = times.parse(worker.pod.metadata.creation_timestamp)
    return 0.0 if created is None else max(0.0, created + PAUSE_S - now)


def outdated(observed: ObservedWorkers, worker: Worker) -> DeletionGround | None:
    """Why a pod of an older revision may be replaced at once; None when it runs or may do so.

    Its template may be what keeps it from starting: an image that does not exist, an option that
    slurmd rejects. With strategy OnDelete users replace pods themselves.
    """
    if worker.is_current:
        return None
    ground = can_delete(worker.pod, observed.slurm).ground
    return ground if ground in _USELESS else None
