"""Jobs: which run, which wait and why."""

from __future__ import annotations

from typing import Final

from dashboards.cluster import JOBS_BY_STATE, NAMESPACES, job_count
from dashboards.model import (
    NAMESPACE,
    RATE,
    Dashboard,
    Query,
    Row,
    Unit,
    curves,
    listing,
    number,
)
from dashboards.sources import either, or_zero

RUNNING: Final = f'slurm_job_info{{{NAMESPACE},job_state="RUNNING"}}'
PENDING: Final = f'slurm_job_info{{{NAMESPACE},job_state="PENDING"}}'
_JOB: Final = {"job_id": "Job", "job_name": "Name", "user_name": "User"}


def _per_minute(state: str) -> str:
    return f"60 * max(rate(slurm_sdiag_jobs_{state}{{{NAMESPACE}}}[{RATE}]))"


JOBS: Final = Dashboard(
    "jobs",
    "Slurm / Jobs",
    "Jobs of one cluster.",
    NAMESPACES,
    (
        Row(
            "Now",
            (
                job_count("running", "Running jobs"),
                job_count("pending", "Pending jobs"),
                number(
                    "CPUs of jobs",
                    either(
                        or_zero(f"sum(slurm_job_cpus{{{NAMESPACE}}} and on (job_id) {RUNNING})"),
                        f"max(slurm_jobs_cpus_alloc{{{NAMESPACE}}})",
                    ),
                    about="CPUs that jobs have.",
                ),
                number(
                    "Longest run",
                    Query(
                        or_zero(
                            f"max(slurm_job_duration_seconds{{{NAMESPACE}}} "
                            f"and on (job_id) {RUNNING})"
                        )
                    ),
                    about="Time since the oldest running job started, of the exporter.",
                    unit=Unit.SECONDS,
                ),
                number(
                    "Failed today",
                    Query(f"max(slurm_sdiag_jobs_failed{{{NAMESPACE}}})"),
                    about="Since slurmctld reset its counters, at midnight UTC. Of slurmctld's own "
                    "metrics.",
                ),
                number(
                    "Completed today",
                    Query(f"max(slurm_sdiag_jobs_completed{{{NAMESPACE}}})"),
                    about="Since slurmctld reset its counters, at midnight UTC. Of slurmctld's own "
                    "metrics.",
                ),
            ),
        ),
        Row(
            "Over time",
            (
                JOBS_BY_STATE,
                curves(
                    "Why jobs wait",
                    Query(f"count by (job_state_reason) ({PENDING})", "{{job_state_reason}}"),
                    about="Pending jobs by Slurm's reason, of the exporter.",
                ),
                curves(
                    "Running jobs by partition",
                    either(
                        f"count by (slurm_partition) ({RUNNING})",
                        "label_replace(max by (partition) (slurm_partition_jobs_running"
                        f'{{{NAMESPACE}}}), "slurm_partition", "$1", "partition", "(.+)")',
                        "{{slurm_partition}}",
                    ),
                    about="Running jobs.",
                ),
                curves(
                    "Jobs that ended in a minute",
                    Query(_per_minute("completed"), "completed"),
                    Query(_per_minute("failed"), "failed"),
                    Query(_per_minute("canceled"), "cancelled"),
                    about="Of slurmctld's own metrics.",
                    unit=Unit.PER_MINUTE,
                ),
            ),
        ),
        Row(
            "Lists",
            (
                listing(
                    "Running jobs",
                    Query(
                        f"slurm_job_duration_seconds{{{NAMESPACE}}} * on (job_id) group_left "
                        "(job_name, user_name, slurm_partition, start_time) "
                        f"{RUNNING}"
                    ),
                    "Running jobs, of the exporter.",
                    **_JOB,
                    slurm_partition="Partition",
                    start_time="Started",
                    Value="Seconds",
                ),
                listing(
                    "Pending jobs",
                    Query(PENDING),
                    "Pending jobs, of the exporter.",
                    **_JOB,
                    slurm_partition="Partition",
                    job_state_reason="Reason",
                    submit_time="Submitted",
                ),
            ),
        ),
    ),
)
