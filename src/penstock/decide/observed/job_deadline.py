"""Until when jobs may run."""

from __future__ import annotations

from collections.abc import Sequence

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
