"""The pod-deadline annotation: until when the jobs of a pod's node may run."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.decide.observed.pod import slurm_node_name
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.model.worker_marks import WorkerMarks
from penstock.slurm.state import Job

UNLIMITED_S = (2**63 - 1) // 10**9
"""About 292 years, the longest duration of slurm-operator's language: its word for no limit."""


def deadline_of(jobs: Sequence[Job]) -> int | None:
    """Unix seconds of the latest end of these jobs, None when there are none.

    A job whose start is not known yet counts as unlimited from the epoch on, so that the answer
    does not move with the clock.
    """
    ends = [
        (job.start_time or 0)
        + (UNLIMITED_S if job.time_limit is None or not job.start_time else 60 * job.time_limit)
        for job in jobs
    ]
    return max(ends, default=None)


def changes(marks: WorkerMarks, pod: Pod, slurm: SlurmSnapshot) -> dict[str, str | None]:
    """What must change at the pod; nothing while Slurm's jobs are unknown."""
    jobs = slurm.jobs(slurm_node_name(pod))
    if jobs is None or not marks.deadline:
        return {}
    end = deadline_of(jobs)
    wanted = None if end is None else times.write(end)
    if pod.metadata.annotations.get(marks.deadline) == wanted:
        return {}
    return {marks.deadline: wanted}


def sort_key(marks: WorkerMarks, pod: Pod, slurm: SlurmSnapshot) -> float:
    """The deadline for scale-in: Slurm's own answer, else the last one that was written down."""
    jobs = slurm.jobs(slurm_node_name(pod))
    if jobs is None:
        return times.parse(pod.metadata.annotations.get(marks.deadline)) or 0.0
    return float(deadline_of(jobs) or 0)
