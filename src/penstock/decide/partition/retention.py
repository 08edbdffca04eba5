"""When a partition that is declared no more may go: once slurmctld lists no job in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import list_some
from penstock.slurm.known import Fact, Unknown
from penstock.slurm.state import Job

DRAINING = "PartitionsDraining"
"""Condition of a Controller: True while partitions that are declared no more stay."""
_FIRST = 5
_RUNS = "JobsInPartition"
_UNKNOWN = "JobsUnknown"
_GOING = "PartitionGoing"


def jobs_in(name: str, jobs: Iterable[Job]) -> list[int]:
    """Ids of the unfinished jobs that name a partition, sorted.

    Pending ones count: slurmctld ends them with the partition, and refuses to delete a partition
    that a pending job names beside others.
    """
    return sorted(job.id for job in jobs if name in job.partition.split(","))


def empty(names: Iterable[str], jobs: Fact[tuple[Job, ...]]) -> list[str]:
    """Those of the partitions in which there is no job; none while jobs are not known."""
    if isinstance(jobs, Unknown):
        return []
    return [name for name in sorted(names) if not jobs_in(name, jobs.value)]


def finding(
    names: Iterable[str],
    jobs: Fact[tuple[Job, ...]],
    refused: Mapping[str, str],
    *,
    restapi: bool = True,
) -> Finding | None:
    """What is told of the partitions that stay; it is no fault, so Ready does not depend on it.

    `refused` has slurmctld's words where it did not delete one, `restapi` says whether there is a
    RestApi: only slurmrestd lists jobs.
    """
    found = sorted(names)
    if not found:
        return None
    if isinstance(jobs, Unknown) and not restapi:
        told = (
            f"Partition {list_some(found)} is removed from the declaration and stays, drained: "
            "there is no RestApi, so nothing lists its jobs. Create a RestApi; you may delete it "
            "again once the partition is gone"
        )
        return _told(_UNKNOWN, told)
    if isinstance(jobs, Unknown):
        named = list_some(found)
        told = (
            f"Partition {named} is removed from the declaration and stays, drained, as its jobs "
            f"are not known: {jobs.why}. It goes once slurmrestd lists no job in it"
        )
        return _told(_UNKNOWN, told)
    busy = {name: ids for name in found if (ids := jobs_in(name, jobs.value))}
    if not busy and refused:
        each = "; ".join(f"{name}: {words}" for name, words in sorted(refused.items()))
        return _told(_GOING, f"Slurm lists no job in it, but slurmctld keeps partition {each}")
    if not busy:
        return _told(
            _GOING, f"Partition {list_some(found)} is drained, has no job, and is being deleted"
        )
    each = "; ".join(f"{name}: {_counted(ids)}" for name, ids in busy.items())
    told = (
        f"Partition {list_some(list(busy))} is removed from the declaration and stays, drained, "
        f"until its jobs have ended ({each}). `scancel --partition=NAME` ends them sooner"
    )
    return _told(_RUNS, told)


def _told(reason: str, message: str) -> Finding:
    return Finding(True, reason, message, type=DRAINING)


def _counted(ids: list[int]) -> str:
    shown = ", ".join(map(str, ids[:_FIRST])) + (", ..." if len(ids) > _FIRST else "")
    noun = "job" if len(ids) == 1 else "jobs"
    return f"{len(ids)} {noun}: {shown}"
