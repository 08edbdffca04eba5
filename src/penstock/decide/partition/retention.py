"""Retention of removed partitions: they stay until slurmctld lists no job in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import list_some
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.partition import PartitionReason
from penstock.slurm.known import Fact, Unknown
from penstock.slurm.state import Job

DRAINING = ConditionType.PARTITIONS_DRAINING
"""Condition of a Controller: True while removed partitions stay for their jobs."""
_FIRST = 5
_RUNS = PartitionReason.JOBS_IN_PARTITION
_UNKNOWN = PartitionReason.JOBS_UNKNOWN
_GOING = PartitionReason.GOING


def jobs_in(name: str, jobs: Iterable[Job]) -> list[int]:
    """Ids of the unfinished jobs that name a partition, sorted.

    Pending ones count: slurmctld ends them with the partition, and rejects the deletion of a
    partition that a pending job names beside others.
    """
    return sorted(job.id for job in jobs if name in job.partition.split(","))


def empty(names: Iterable[str], jobs: Fact[tuple[Job, ...]]) -> list[str]:
    """Return the partitions without a job; none while jobs are unknown."""
    if isinstance(jobs, Unknown):
        return []
    return [name for name in sorted(names) if not jobs_in(name, jobs.value)]


def finding(
    names: Iterable[str],
    jobs: Fact[tuple[Job, ...]],
    rejected: Mapping[str, str],
    *,
    restapi: bool = True,
) -> Finding | None:
    """Return the condition about partitions that stay. Ready does not depend on it.

    `rejected` has slurmctld's words for each deletion that it rejected. `restapi` is whether a
    RestApi exists: only slurmrestd lists jobs.
    """
    found = sorted(names)
    if not found:
        return None
    if isinstance(jobs, Unknown) and not restapi:
        message = (
            f"Partition {list_some(found)} is removed from the declaration and stays, drained, as "
            "no RestApi lists its jobs. Create one; you may delete it once the partition is gone"
        )
        return _finding(_UNKNOWN, message)
    if isinstance(jobs, Unknown):
        named = list_some(found)
        message = (
            f"Partition {named} is removed from the declaration and stays, drained, as its jobs "
            f"are not known: {jobs.why}. It goes once slurmrestd lists no job in it"
        )
        return _finding(_UNKNOWN, message)
    busy = {name: ids for name in found if (ids := jobs_in(name, jobs.value))}
    if not busy and rejected:
        each = "; ".join(f"{name}: {words}" for name, words in sorted(rejected.items()))
        return _finding(_GOING, f"Slurm lists no job in it, but slurmctld keeps partition {each}")
    if not busy:
        return _finding(
            _GOING, f"Partition {list_some(found)} is drained, has no job, and is being deleted"
        )
    each = "; ".join(f"{name}: {_counted(ids)}" for name, ids in busy.items())
    message = (
        f"Partition {list_some(list(busy))} is removed from the declaration and stays, drained, "
        f"until its jobs have ended ({each}). `scancel --partition=NAME` ends them sooner"
    )
    return _finding(_RUNS, message)


def _finding(reason: ConditionReason, message: str) -> Finding:
    return Finding(True, reason, message, type=DRAINING)


def _counted(ids: list[int]) -> str:
    shown = ", ".join(map(str, ids[:_FIRST])) + (", ..." if len(ids) > _FIRST else "")
    noun = "job" if len(ids) == 1 else "jobs"
    return f"{len(ids)} {noun}: {shown}"
