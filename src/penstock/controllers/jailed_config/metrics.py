"""Metrics of sconfigcontroller, beside those of the engine."""

from __future__ import annotations

from prometheus_client import Counter

FILES_REPLACED = Counter(
    "penstock_jail_files_replaced_total",
    "Files of the jail that were replaced, by the object with their content.",
    ("kind",),
    registry=None,
)
FAILURES = Counter(
    "penstock_jail_failures_total",
    "Objects whose files could not be written, by their kind.",
    ("kind",),
    registry=None,
)
RECONFIGURES = Counter(
    "penstock_jail_reconfigures_total",
    "Reconfigures of slurmctld after files changed, by their result.",
    ("result",),
    registry=None,
)
ALL = (FILES_REPLACED, FAILURES, RECONFIGURES)
