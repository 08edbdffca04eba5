"""Queries that find nothing on a healthy cluster of CPUs, with the series on which they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_NS: Final = 'namespace="slurm"'


@dataclass(frozen=True, slots=True)
class Absent:
    """Why there is nothing, and what promtool finds on series (one value for each minute)."""

    reason: str
    series: Mapping[str, str]
    labels: str
    value: float


ABSENT: Final[Mapping[str, Absent]] = {
    "workers: GPUs by state of their node": Absent(
        "needs GPUs",
        {f'slurm_node_gpu_seconds_total{{{_NS},node_name="a",state_base="IDLE"}}': "0+480x20"},
        '{state_base="IDLE"}',
        8,
    ),
    "checks: Mean time until a drained node is free of jobs": Absent(
        "needs a drain beside a job that is read before it ends",
        {
            f'slurm_node_draining_duration_seconds_sum{{{_NS},node_name="a"}}': "90x20",
            f'slurm_node_draining_duration_seconds_count{{{_NS},node_name="a"}}': "3x20",
        },
        "{}",
        30,
    ),
    "operator: Failed reconciles": Absent(
        "needs an error that the operator has no condition for",
        {
            f'penstock_reconcile_seconds_count{{{_NS},controller="nodeset",result="error"}}': (
                "0+30x20"
            )
        },
        '{controller="nodeset"}',
        0.5,
    ),
}
"""By dashboard and title of the panel."""

ONLY_WITH_FAULTS: Final = frozenset(
    (
        "kube_customresource_condition",  # of kube-state-metrics
        "penstock_jail_failures_total",  # of sconfigcontroller, when a file cannot be written
        "penstock_undecodable_objects_total",  # when an object does not fit its kind
    )
)
"""Series of alerts that a healthy cluster does not have."""
