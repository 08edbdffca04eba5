"""All metrics of the exporter as data: names, types, labels and units.

`SLURM` are the published names of soperator, `OWN` those about the exporter itself. `VPENSO` are
those of prometheus-slurm-exporter (vpenso), which are served on request.
"""

from __future__ import annotations

from typing import Final

from penstock.catalog.metric import Metric

_STATE: Final = ("node_name", "state_base", "state_is_drain", "state_is_maintenance")
_STATES: Final = (*_STATE, "state_is_reserved")
_NODE: Final = ("node_name",)
_JOB: Final = ("job_id",)
_PLACE: Final = ("nvlink_instance_group", "nodeset_name")

NODE_INFO: Final = Metric(
    "slurm_node_info",
    "gauge",
    "State of the node; always 1",
    (
        "node_name",
        "instance_id",
        "state_base",
        "state_is_drain",
        "state_is_maintenance",
        "state_is_reserved",
        "state_is_completing",
        "state_is_fail",
        "state_is_planned",
        "state_is_not_responding",
        "state_is_invalid",
        "state_is_cloud",
        "state_is_power_down",
        "state_is_power_drain",
        "state_is_powered_down",
        "state_is_powering_down",
        "state_is_powering_up",
        "state_is_power_up",
        "is_unavailable",
        "reservation_name",
        "address",
        "reason",
        "comment",
    ),
)
NODE_CPUS: Final = Metric("slurm_node_cpus_total", "gauge", "CPUs of the node", _NODE)
NODE_CPUS_ALLOCATED: Final = Metric(
    "slurm_node_cpus_allocated", "gauge", "CPUs of the node that jobs have", _NODE
)
NODE_CPUS_IDLE: Final = Metric(
    "slurm_node_cpus_idle", "gauge", "CPUs of the node that no job has", _NODE
)
NODE_CPUS_EFFECTIVE: Final = Metric(
    "slurm_node_cpus_effective", "gauge", "CPUs of the node that jobs may have", _NODE
)
NODE_MEMORY: Final = Metric(
    "slurm_node_memory_total_bytes", "gauge", "Memory of the node", _NODE, "bytes"
)
NODE_MEMORY_ALLOCATED: Final = Metric(
    "slurm_node_memory_allocated_bytes", "gauge", "Memory that jobs have", _NODE, "bytes"
)
NODE_MEMORY_FREE: Final = Metric(
    "slurm_node_memory_free_bytes", "gauge", "Memory that no process uses", _NODE, "bytes"
)
NODE_MEMORY_EFFECTIVE: Final = Metric(
    "slurm_node_memory_effective_bytes", "gauge", "Memory that jobs may have", _NODE, "bytes"
)
NODE_PARTITION: Final = Metric(
    "slurm_node_partition", "gauge", "Partition of the node; always 1", ("node_name", "partition")
)
NODE_NVLINK: Final = Metric(
    "slurm_node_nvlink_instance_group",
    "gauge",
    "NVLink group of the node's Kubernetes node; always 1",
    ("node_name", "instance_id", *_PLACE),
)
NODE_GPU_SECONDS: Final = Metric(
    "slurm_node_gpu_seconds_total",
    "counter",
    "GPUs of the node, multiplied by the time in this state",
    _STATES,
    "seconds",
)
NODE_FAILS: Final = Metric(
    "slurm_node_fails_total",
    "counter",
    "Changes of the node to down or drained",
    (*_STATES, "reason"),
)
NODE_UNAVAILABILITY: Final = Metric(
    "slurm_node_unavailability_duration_seconds",
    "histogram",
    "Duration of times in which no job could start on the node, once they end",
    _NODE,
    "seconds",
)
NODE_DRAINING: Final = Metric(
    "slurm_node_draining_duration_seconds",
    "histogram",
    "Duration of drains while jobs were on the node, once they end",
    _NODE,
    "seconds",
)
JOB_INFO: Final = Metric(
    "slurm_job_info",
    "gauge",
    "A job that slurmctld or slurmdbd lists; always 1",
    (
        "job_id",
        "job_state",
        "job_state_reason",
        "slurm_partition",
        "job_name",
        "user_name",
        "user_mail",
        "user_id",
        "standard_error",
        "standard_output",
        "array_job_id",
        "array_task_id",
        "submit_time",
        "start_time",
        "end_time",
        "finished_time",
    ),
)
NODE_JOB: Final = Metric(
    "slurm_node_job", "gauge", "Node of a job; always 1", ("job_id", "node_name", *_PLACE)
)
JOB_DURATION: Final = Metric(
    "slurm_job_duration_seconds", "gauge", "Time since the job started", _JOB, "seconds"
)
JOB_CPUS: Final = Metric("slurm_job_cpus", "gauge", "CPUs that the job has, or asks for", _JOB)
JOB_MEMORY: Final = Metric(
    "slurm_job_memory_bytes", "gauge", "Memory that the job has, or asks for", _JOB, "bytes"
)
RPC_CALLS: Final = Metric(
    "slurm_controller_rpc_calls_total", "counter", "Calls of slurmctld by kind", ("message_type",)
)
RPC_SECONDS: Final = Metric(
    "slurm_controller_rpc_duration_seconds_total",
    "counter",
    "Time of slurmctld for calls by kind",
    ("message_type",),
    "seconds",
)
RPC_USER_CALLS: Final = Metric(
    "slurm_controller_rpc_user_calls_total",
    "counter",
    "Calls of slurmctld by user",
    ("user", "user_id"),
)
RPC_USER_SECONDS: Final = Metric(
    "slurm_controller_rpc_user_duration_seconds_total",
    "counter",
    "Time of slurmctld for calls by user",
    ("user", "user_id"),
    "seconds",
)
SERVER_THREADS: Final = Metric(
    "slurm_controller_server_thread_count", "gauge", "Threads of slurmctld that answer calls"
)
SLURM: Final = (
    NODE_INFO,
    NODE_CPUS,
    NODE_CPUS_ALLOCATED,
    NODE_CPUS_IDLE,
    NODE_CPUS_EFFECTIVE,
    NODE_MEMORY,
    NODE_MEMORY_ALLOCATED,
    NODE_MEMORY_FREE,
    NODE_MEMORY_EFFECTIVE,
    NODE_PARTITION,
    NODE_NVLINK,
    NODE_GPU_SECONDS,
    NODE_FAILS,
    NODE_UNAVAILABILITY,
    NODE_DRAINING,
    JOB_INFO,
    NODE_JOB,
    JOB_DURATION,
    JOB_CPUS,
    JOB_MEMORY,
    RPC_CALLS,
    RPC_SECONDS,
    RPC_USER_CALLS,
    RPC_USER_SECONDS,
    SERVER_THREADS,
)

COLLECTION_DURATION: Final = Metric(
    "slurm_exporter_collection_duration_seconds",
    "gauge",
    "Duration of the last collection",
    unit="seconds",
)
COLLECTION_ATTEMPTS: Final = Metric(
    "slurm_exporter_collection_attempts_total", "counter", "Collections"
)
COLLECTION_FAILURES: Final = Metric(
    "slurm_exporter_collection_failures_total", "counter", "Collections of which a part failed"
)
COLLECTOR_DURATION: Final = Metric(
    "slurm_exporter_collector_duration_seconds",
    "gauge",
    "Duration of the last collection of one part",
    ("collector",),
    "seconds",
)
COLLECTOR_ERRORS: Final = Metric(
    "slurm_exporter_collector_errors_total", "counter", "Failures of one part", ("collector",)
)
COLLECTOR_INFLIGHT: Final = Metric(
    "slurm_exporter_collector_inflight", "gauge", "Running collections of one part", ("collector",)
)
COLLECTOR_SKIPPED: Final = Metric(
    "slurm_exporter_collector_skipped_total",
    "counter",
    "Collections of one part that were left out as earlier ones ran",
    ("collector",),
)
REQUESTS: Final = Metric("slurm_exporter_metrics_requests_total", "counter", "Requests of /metrics")
EXPORTED: Final = Metric(
    "slurm_exporter_metrics_exported", "gauge", "Series in the last answer to /metrics"
)
OWN: Final = (
    COLLECTION_DURATION,
    COLLECTION_ATTEMPTS,
    COLLECTION_FAILURES,
    COLLECTOR_DURATION,
    COLLECTOR_ERRORS,
    COLLECTOR_INFLIGHT,
    COLLECTOR_SKIPPED,
    REQUESTS,
    EXPORTED,
)


def _gauges(prefix: str, about: dict[str, str], labels: tuple[str, ...] = ()) -> tuple[Metric, ...]:
    return tuple(Metric(prefix + name, "gauge", text, labels) for name, text in about.items())


VPENSO_CPUS: Final = _gauges(
    "slurm_cpus_",
    {
        "alloc": "CPUs that jobs have",
        "idle": "CPUs that no job has",
        "other": "CPUs that no job may have now",
        "total": "CPUs of all nodes",
    },
)
VPENSO_NODES: Final = _gauges(
    "slurm_nodes_",
    {
        "alloc": "Nodes of which jobs have all CPUs",
        "comp": "Nodes that a job is leaving",
        "down": "Nodes that are down",
        "drain": "Nodes that drain or are drained",
        "err": "Nodes in state ERROR",
        "fail": "Nodes in state FAIL",
        "idle": "Nodes without jobs",
        "maint": "Nodes in maintenance",
        "mix": "Nodes of which jobs have some CPUs",
        "resv": "Nodes in a reservation",
    },
)
VPENSO_QUEUE: Final = _gauges(
    "slurm_queue_",
    {
        "pending": "Jobs that wait",
        "pending_dependency": "Jobs that wait for another job",
        "running": "Jobs that run",
        "suspended": "Suspended jobs",
        "cancelled": "Cancelled jobs",
        "completing": "Jobs that are leaving their nodes",
        "completed": "Jobs that ended with exit code 0",
        "configuring": "Jobs whose nodes are not ready yet",
        "failed": "Jobs that ended with another exit code",
        "timeout": "Jobs that ended at their time limit",
        "preempted": "Jobs that were preempted",
        "node_fail": "Jobs that ended because of a node",
    },
)
VPENSO_SCHEDULER: Final = _gauges(
    "slurm_scheduler_",
    {
        "threads": "Threads of slurmctld that answer calls",
        "queue_size": "Messages of slurmctld that wait to be sent",
        "dbd_queue_size": "Messages that wait for slurmdbd",
        "last_cycle": "Microseconds of the last scheduling cycle",
        "mean_cycle": "Mean microseconds of scheduling cycles",
        "cycle_per_minute": "Scheduling cycles in a minute",
        "backfill_last_cycle": "Microseconds of the last backfill cycle",
        "backfill_mean_cycle": "Mean microseconds of backfill cycles",
        "backfill_depth_mean": "Mean of the jobs in a backfill cycle",
        "backfilled_jobs_since_start_total": "Jobs that backfill started since slurmctld began",
        "backfilled_jobs_since_cycle_total": "Jobs that backfill started since counters began",
        "backfilled_heterogeneous_total": "Parts of heterogeneous jobs that backfill started",
    },
)
VPENSO_PARTITION: Final = _gauges(
    "slurm_partition_",
    {
        "cpus_allocated": "CPUs of the partition that jobs have",
        "cpus_idle": "CPUs of the partition that no job has",
        "cpus_other": "CPUs of the partition that no job may have now",
        "cpus_total": "CPUs of the partition",
        "jobs_pending": "Jobs that wait for the partition",
    },
    ("partition",),
)
_OF_OWNERS: Final = {
    "jobs_pending": "Jobs that wait",
    "jobs_running": "Jobs that run",
    "cpus_running": "CPUs of jobs that run",
    "jobs_suspended": "Suspended jobs",
}
VPENSO_ACCOUNT: Final = _gauges("slurm_account_", _OF_OWNERS, ("account",))
VPENSO_USER: Final = _gauges("slurm_user_", _OF_OWNERS, ("user",))
VPENSO_GPUS: Final = _gauges(
    "slurm_gpus_",
    {
        "alloc": "GPUs that jobs have",
        "idle": "GPUs that no job has, of nodes that take jobs",
        "other": "GPUs that no job may have now",
        "total": "GPUs of all nodes",
        "utilization": "Share of GPUs that jobs have",
    },
)
VPENSO_NODE: Final = _gauges(
    "slurm_node_",
    {
        "cpu_alloc": "CPUs of the node that jobs have",
        "cpu_idle": "CPUs of the node that no job has",
        "cpu_other": "CPUs of the node that no job may have now",
        "cpu_total": "CPUs of the node",
        "mem_alloc": "MiB of memory that jobs have",
        "mem_total": "MiB of memory of the node",
    },
    ("node", "status"),
)
VPENSO: Final = (
    *VPENSO_CPUS,
    *VPENSO_NODES,
    *VPENSO_QUEUE,
    *VPENSO_SCHEDULER,
    *VPENSO_PARTITION,
    *VPENSO_ACCOUNT,
    *VPENSO_USER,
    *VPENSO_GPUS,
    *VPENSO_NODE,
)
"""Gauges, also where a name ends with `total`, as prometheus-slurm-exporter has them."""
