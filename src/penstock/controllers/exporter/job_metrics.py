"""Metrics of jobs by the published names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.catalog import exporter_metric as of
from penstock.controllers.exporter.family import Family, single
from penstock.controllers.exporter.node_state import MIB, tres_amounts
from penstock.controllers.exporter.snapshot import Snapshot
from penstock.slurm import hostlist
from penstock.slurm.rest.records import JobRecord

ENDED: Final = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "RECONFIG_FAIL",
        "REVOKED",
        "SPECIAL_EXIT",
        "STOPPED",
        "TIMEOUT",
    }
)
"""States in which a job's time has ended. Source: squeue(1), JOB STATE CODES."""


def families(taken: Snapshot) -> Iterator[Family]:
    """All of them; their series are made while they are written."""
    jobs = taken.jobs
    yield single(of.JOB_INFO, ((_info(job), 1) for job in jobs))
    cpus = ((job.id, allocated_cpus(job)) for job in jobs)
    yield single(of.JOB_CPUS, (((str(id_),), value) for id_, value in cpus if value is not None))
    memory = ((job.id, allocated_memory(job)) for job in jobs)
    yield single(
        of.JOB_MEMORY, (((str(id_),), value) for id_, value in memory if value is not None)
    )
    times = ((job.id, duration(job, taken.now)) for job in jobs)
    yield single(of.JOB_DURATION, (((str(id_),), value) for id_, value in times if value > 0))
    yield single(of.NODE_JOB, ((labels, 1) for labels in _nodes(taken)))


def duration(job: JobRecord, now: float) -> float:
    """Seconds since it started, up to its end; 0 or less without a start."""
    if not job.start_time:
        return 0.0
    if job.state not in ENDED:
        return now - job.start_time
    return job.end_time - job.start_time if job.end_time else 0.0


def allocated_cpus(job: JobRecord) -> float | None:
    """CPUs that it has, else those that it asks for."""
    return _amount(job, "cpu") or job.cpus


def allocated_memory(job: JobRecord) -> float | None:
    """Bytes that it has, else those that it asks for; None while its nodes are not counted."""
    if found := _amount(job, "mem"):
        return found
    if job.memory_per_node is None or job.node_count is None:
        return None
    return job.memory_per_node * job.node_count * MIB


def _amount(job: JobRecord, name: str) -> float | None:
    for tres in (job.allocated_tres, job.requested_tres):
        if found := tres_amounts(tres).get(name):
            return found
    return None


def _info(job: JobRecord) -> tuple[str, ...]:
    end = _time(job.end_time)
    return (
        str(job.id),
        job.state,
        job.reason,
        job.partition,
        job.name,
        job.user,
        job.mail,
        job.user_id,
        job.standard_error,
        job.standard_output,
        job.array_job,
        job.array_task,
        _time(job.submit_time),
        _time(job.start_time),
        end,
        end if job.state in ENDED else "",
    )


def _time(seconds: int) -> str:
    return str(seconds) if seconds else ""


def _nodes(taken: Snapshot) -> Iterator[tuple[str, str, str, str]]:
    for job in taken.jobs:
        if not job.nodes:
            continue
        try:
            names = hostlist.expand(job.nodes)
        except hostlist.HostListError:
            continue
        for name in names:
            place = taken.place(name)
            yield str(job.id), name, place.nvlink_group, place.node_set
