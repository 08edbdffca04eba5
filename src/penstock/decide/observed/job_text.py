"""Words for jobs, and words of daemons, in messages."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.base import times
from penstock.base.text import list_some
from penstock.slurm.state import Job


def printable(text: str) -> str:
    """A daemon's words on one line, with "?" for control characters and Unicode's separators."""
    return "".join(one if one == " " or one.isprintable() else "?" for one in text)


def describe_jobs(jobs: Sequence[Job]) -> str:
    """`job 17 (since 2026-01-01T08:00:00Z, until 2026-01-01T10:00:00Z)`, and so on."""
    return list_some([_job(job) for job in jobs])


def _job(job: Job) -> str:
    parts: list[str] = []
    if "SUSPENDED" in job.state:
        parts.append("suspended")
    if job.start_time:
        parts.append(f"since {times.write(job.start_time)}")
        if job.time_limit is not None:
            parts.append(f"until {times.write(job.start_time + 60 * job.time_limit)}")
    if job.time_limit is None:
        parts.append("no time limit")
    return f"job {job.id} ({', '.join(parts)})" if parts else f"job {job.id}"
