"""The whole cluster at a glance."""

from __future__ import annotations

from typing import Final

from dashboards.model import (
    NAMESPACE,
    RATE,
    Dashboard,
    Panel,
    Query,
    Row,
    Unit,
    curves,
    number,
)
from dashboards.sources import JOB_STATES, NODE_STATES, either, or_zero

NAMESPACES: Final = '{__name__=~"slurm_node_info|slurm_nodes"}'
"""Series of each cluster, from the exporter or from slurmctld."""
_NODES: Final = f"slurm_node_info{{{NAMESPACE}}}"
_UNAVAILABLE: Final = f'slurm_node_info{{{NAMESPACE},is_unavailable="true"}}'


def _by_name(prefix: str, names: tuple[str, ...], label: str) -> str:
    """One series for each of slurmctld's metrics `PREFIXNAME`, with the name as a label."""
    pattern = f"{prefix}({'|'.join(names)})"
    series = f'{{__name__=~"{pattern}",{NAMESPACE}}}'
    named = f'label_replace({series}, "{label}", "$1", "__name__", "{prefix}(.+)")'
    return f"max by ({label}) ({named})"


def job_count(state: str, title: str) -> Panel:
    """The number of jobs in one state."""
    return number(
        title,
        either(
            or_zero(f'count(slurm_job_info{{{NAMESPACE},job_state="{state.upper()}"}})'),
            f"max(slurm_jobs_{state}{{{NAMESPACE}}})",
        ),
        about=f"Jobs in state {state.upper()}.",
    )


UNAVAILABLE: Final = number(
    "Unavailable nodes",
    either(
        or_zero(f"count({_UNAVAILABLE})"),
        f"max(slurm_nodes_down{{{NAMESPACE}}}) + max(slurm_nodes_drain{{{NAMESPACE}}})",
    ),
    about="Nodes that are down, silent, failed or drained. Without the exporter a node that is "
    "down and drained counts twice.",
)
CPUS_IN_USE: Final = number(
    "CPUs in use",
    either(
        f"sum(slurm_node_cpus_allocated{{{NAMESPACE}}}) / "
        f"sum(slurm_node_cpus_total{{{NAMESPACE}}})",
        f"sum(slurm_node_cpus_alloc{{{NAMESPACE}}}) / sum(slurm_node_cpus{{{NAMESPACE}}})",
    ),
    about="Share of all CPUs that jobs have.",
    unit=Unit.SHARE,
)
JOBS_BY_STATE: Final = curves(
    "Jobs by state",
    either(
        f"count by (job_state) (slurm_job_info{{{NAMESPACE}}})",
        _by_name("slurm_jobs_", JOB_STATES, "job_state"),
        "{{job_state}}",
    ),
    about="Jobs that slurmctld lists: ended ones stay for MinJobAge, five minutes by default.",
)

CLUSTER: Final = Dashboard(
    "cluster",
    "Slurm / Cluster",
    "Nodes, jobs and slurmctld of one cluster.",
    NAMESPACES,
    (
        Row(
            "Now",
            (
                number(
                    "Nodes",
                    either(f"count({_NODES})", f"max(slurm_nodes{{{NAMESPACE}}})"),
                    about="Slurm nodes.",
                ),
                UNAVAILABLE,
                CPUS_IN_USE,
                number(
                    "Memory in use",
                    either(
                        f"sum(slurm_node_memory_allocated_bytes{{{NAMESPACE}}}) / "
                        f"sum(slurm_node_memory_total_bytes{{{NAMESPACE}}})",
                        f"sum(slurm_node_memory_alloc_bytes{{{NAMESPACE}}}) / "
                        f"sum(slurm_node_memory_bytes{{{NAMESPACE}}})",
                    ),
                    about="Share of all memory that jobs have; 0 where Slurm allocates none.",
                    unit=Unit.SHARE,
                ),
                job_count("running", "Running jobs"),
                job_count("pending", "Pending jobs"),
            ),
        ),
        Row(
            "Nodes and jobs",
            (
                curves(
                    "Nodes by state",
                    either(
                        "sum by (state) (label_replace("
                        f'{_NODES}, "state", "$1", "state_base", "(.+)"))',
                        _by_name("slurm_nodes_", NODE_STATES, "state"),
                        "{{state}}",
                    ),
                    Query(
                        f'count(slurm_node_info{{{NAMESPACE},state_is_drain="true"}})', "drained"
                    ),
                    about="Nodes by base state. Drained nodes have a base state as well.",
                ),
                JOBS_BY_STATE,
                curves(
                    "CPUs",
                    either(
                        f"sum(slurm_node_cpus_allocated{{{NAMESPACE}}})",
                        f"sum(slurm_node_cpus_alloc{{{NAMESPACE}}})",
                        "jobs have",
                    ),
                    either(
                        f"sum(slurm_node_cpus_total{{{NAMESPACE}}})",
                        f"sum(slurm_node_cpus{{{NAMESPACE}}})",
                        "there are",
                    ),
                    about="CPUs that jobs have, and all.",
                ),
                curves(
                    "Memory",
                    either(
                        f"sum(slurm_node_memory_allocated_bytes{{{NAMESPACE}}})",
                        f"sum(slurm_node_memory_alloc_bytes{{{NAMESPACE}}})",
                        "jobs have",
                    ),
                    either(
                        f"sum(slurm_node_memory_total_bytes{{{NAMESPACE}}})",
                        f"sum(slurm_node_memory_bytes{{{NAMESPACE}}})",
                        "there is",
                    ),
                    about="Memory that jobs have, and all.",
                    unit=Unit.BYTES,
                ),
            ),
        ),
        Row(
            "Partitions",
            (
                curves(
                    "Pending jobs by partition",
                    Query(
                        f"max by (partition) (slurm_partition_jobs_pending{{{NAMESPACE}}})",
                        "{{partition}}",
                    ),
                    about="Of slurmctld's own metrics.",
                ),
                curves(
                    "CPUs in use by partition",
                    Query(
                        f"max by (partition) (slurm_partition_nodes_cpus_alloc{{{NAMESPACE}}})",
                        "{{partition}}",
                    ),
                    about="Of slurmctld's own metrics. A node of two partitions counts in both.",
                ),
            ),
        ),
        Row(
            "slurmctld",
            (
                curves(
                    "Threads that answer calls",
                    either(
                        f"max(slurm_controller_server_thread_count{{{NAMESPACE}}})",
                        f"max(slurm_server_thread_cnt{{{NAMESPACE}}})",
                        "threads",
                    ),
                    about="At 256 slurmctld answers no further call.",
                ),
                curves(
                    "Calls by kind",
                    Query(
                        "topk(10, sum by (message_type) "
                        f"(rate(slurm_controller_rpc_calls_total{{{NAMESPACE}}}[{RATE}])))",
                        "{{message_type}}",
                    ),
                    about="The ten most frequent kinds, of the exporter.",
                    unit=Unit.PER_SECOND,
                ),
                curves(
                    "Duration of the last scheduling cycle",
                    Query(f"max(slurm_schedule_cycle_last{{{NAMESPACE}}}) / 1e6", "main"),
                    Query(f"max(slurm_bf_cycle_last{{{NAMESPACE}}}) / 1e6", "backfill"),
                    about="Of slurmctld's own metrics.",
                    unit=Unit.SECONDS,
                ),
                curves(
                    "Records that wait for slurmdbd",
                    Query(f"max(slurm_slurmdbd_queue_size{{{NAMESPACE}}})", "records"),
                    about="Of slurmctld's own metrics. They grow while slurmdbd does not answer.",
                ),
            ),
        ),
    ),
)
