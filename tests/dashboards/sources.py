"""The series that queries may name, beside those of `penstock.catalog`."""

from __future__ import annotations

from typing import Final

from dashboards.model import NAMESPACE, Query
from penstock.catalog import exporter_metric
from penstock.catalog.metric import METRICS, Metric

JOB_STATES: Final = (
    "cancelled",
    "completed",
    "completing",
    "failed",
    "node_failed",
    "outofmemory",
    "pending",
    "preempted",
    "running",
    "suspended",
    "timeout",
)
NODE_STATES: Final = ("alloc", "down", "drain", "idle", "mixed")
SLURMCTLD: Final = (
    *(f"slurm_jobs_{state}" for state in JOB_STATES),
    "slurm_jobs_cpus_alloc",
    *(f"slurm_nodes_{state}" for state in NODE_STATES),
    "slurm_nodes",
    "slurm_node_cpus",
    "slurm_node_cpus_alloc",
    "slurm_node_memory_alloc_bytes",
    "slurm_node_memory_bytes",
    "slurm_node_memory_free_bytes",
    "slurm_partition_jobs_pending",
    "slurm_partition_jobs_running",
    "slurm_partition_nodes",
    "slurm_partition_nodes_cpus_alloc",
    "slurm_account_jobs_cpus_alloc",
    "slurm_account_jobs_pending",
    "slurm_account_jobs_running",
    "slurm_user_jobs_cpus_alloc",
    "slurm_user_jobs_pending",
    "slurm_bf_cycle_last",
    "slurm_schedule_cycle_last",
    "slurm_sdiag_jobs_canceled",
    "slurm_sdiag_jobs_completed",
    "slurm_sdiag_jobs_failed",
    "slurm_server_thread_cnt",
    "slurm_slurmdbd_queue_size",
)
"""Slurm's own metrics (plug-in metrics/openmetrics, since 25.11) that we use."""
OTHERS: Final = ("up", "kube_customresource_condition")
"""Of Prometheus itself, and of kube-state-metrics."""

_SUFFIXES: Final = {"histogram": ("_bucket", "_sum", "_count")}


def series_of(metric: Metric) -> tuple[str, ...]:
    """Names of a metric's series."""
    suffixes = _SUFFIXES.get(metric.kind, ("",))
    return tuple(f"{metric.name}{suffix}" for suffix in suffixes)


KNOWN: Final = frozenset(
    (
        *(
            name
            for metric in (*METRICS, *exporter_metric.SLURM, *exporter_metric.OWN)
            for name in series_of(metric)
        ),
        *SLURMCTLD,
        *OTHERS,
    )
)
"""All series that a query may name."""

_NODES: Final = f"slurm_node_info{{{NAMESPACE}}}"


def either(exporter: str, slurmctld: str, legend: str = "") -> Query:
    """A query on the exporter's series or, in a cluster without one, on slurmctld's own."""
    return Query(exporter, legend, otherwise=slurmctld, unless=_NODES)


def or_zero(expr: str) -> str:
    """0 where the expression finds nothing although there are nodes."""
    return f"({expr}) or 0 * count({_NODES})"
