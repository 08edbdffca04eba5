"""Metrics of the controllers, beside those of the engine."""

from __future__ import annotations

from prometheus_client import Counter

SLURM_CALLS = Counter(
    "penstock_slurm_requests_total",
    "Requests sent to slurmrestd.",
    ("controller", "method", "path"),
    registry=None,
)
POD_DELETES = Counter(
    "penstock_pod_deletes_total",
    "Worker pods deleted, by the ground on which no job could be lost.",
    ("ground",),
    registry=None,
)
ALL = (SLURM_CALLS, POD_DELETES)
