"""How many pods may be unavailable at once."""

from __future__ import annotations

import math

from penstock.model.worker_set import WorkerSet


def max_unavailable(workers: WorkerSet, wanted: int) -> int:
    """The budget: percentages are of the wanted pods and rounded up; at least 1."""
    most = workers.update.max_unavailable
    if isinstance(most, str):
        most = math.ceil(wanted * int(most.removesuffix("%")) / 100)
    return max(1, most)
