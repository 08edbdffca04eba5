"""The same cluster by the names of prometheus-slurm-exporter (vpenso), for its dashboards.

That exporter reads the output of sinfo, squeue and sdiag; its README has the names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from penstock.catalog import exporter_metric as of
from penstock.catalog.exporter_metric import Metric
from penstock.controllers.exporter import node_state
from penstock.controllers.exporter.family import Family, single
from penstock.controllers.exporter.job_metrics import allocated_cpus
from penstock.controllers.exporter.snapshot import Snapshot
from penstock.slurm.rest.records import JobRecord, NodeRecord

_NODE_WORDS: Final = {
    "alloc": "alloc",
    "comp": "comp",
    "down": "down",
    "drain": "drain",
    "fail": "fail",
    "error": "err",
    "idle": "idle",
    "maint": "maint",
    "mix": "mix",
    "resv": "resv",
    "reserved": "resv",
}
"""Beginning of sinfo's word for a state, and the metric that counts it."""
_SCHEDULER: Final = (
    "server_thread_count",
    "agent_queue_size",
    "dbd_agent_queue_size",
    "schedule_cycle_last",
    "schedule_cycle_mean",
    "schedule_cycle_per_minute",
    "bf_cycle_last",
    "bf_cycle_mean",
    "bf_depth_mean",
    "bf_backfilled_jobs",
    "bf_last_backfilled_jobs",
    "bf_backfilled_het_jobs",
)
"""Counters of slurmctld in the order of `declarations.VPENSO_SCHEDULER`."""


def families(taken: Snapshot) -> Iterator[Family]:
    """All of them."""
    nodes, jobs = taken.nodes, taken.jobs
    yield from _plain(of.VPENSO_CPUS, _cpus(nodes))
    counted = Counter([_node_word(node) for node in nodes])
    yield from _plain(of.VPENSO_NODES, [counted[_name(one)] for one in of.VPENSO_NODES])
    yield from _plain(of.VPENSO_GPUS, _gpus(nodes))
    yield from _queue(jobs)
    if taken.counters is not None:
        found = [getattr(taken.counters, name) or 0 for name in _SCHEDULER]
        yield from _plain(of.VPENSO_SCHEDULER, found)
    yield from _partitions(nodes, jobs)
    yield from _owners(of.VPENSO_ACCOUNT, ((job.account, job) for job in jobs))
    yield from _owners(of.VPENSO_USER, ((job.user, job) for job in jobs))
    yield from _nodes(nodes)


def job_word(job: JobRecord) -> str:
    """The state as squeue prints it: flags come before the base state."""
    return next((one for one in ("COMPLETING", "CONFIGURING") if one in job.states), job.state)


def _name(metric: Metric) -> str:
    return metric.name.rpartition("_")[2]


def _plain(metrics: Sequence[Metric], values: Sequence[float]) -> Iterator[Family]:
    for metric, value in zip(metrics, values, strict=True):
        yield single(metric, [((), value)])


def _node_word(node: NodeRecord) -> str:
    word = node_state.long_state(node)
    return next((name for begin, name in _NODE_WORDS.items() if word.startswith(begin)), "")


def _cpu_states(node: NodeRecord) -> tuple[int, int, int, int]:
    """CPUs allocated, idle, other and all, as `sinfo -O CPUsState` prints them."""
    total, allocated = node.cpus or 0, node.allocated_cpus or 0
    takes_jobs = not node.states & {"DOWN", "DRAIN"}
    idle = max(total - allocated, 0) if takes_jobs else 0
    return allocated, idle, total - allocated - idle, total


def _cpus(nodes: Iterable[NodeRecord]) -> tuple[int, ...]:
    states = [_cpu_states(node) for node in nodes]
    return tuple(map(sum, zip(*states, strict=True))) if states else (0, 0, 0, 0)


def _gpus(nodes: Iterable[NodeRecord]) -> tuple[float, ...]:
    allocated = idle = total = 0
    for node in nodes:
        all_, used = node_state.gres_gpus(node.gres), node_state.gres_gpus(node.gres_used)
        total, allocated = total + all_, allocated + used
        if not node.states & {"DOWN", "DRAIN", "FAIL", "ERROR", "UNKNOWN"}:
            idle += max(all_ - used, 0)
    return allocated, idle, total - allocated - idle, total, allocated / total if total else 0.0


def _queue(jobs: Iterable[JobRecord]) -> Iterator[Family]:
    counted: Counter[str] = Counter()
    for job in jobs:
        word = job_word(job).lower()
        counted[word] += 1
        if word == "pending" and job.reason == "Dependency":
            counted["pending_dependency"] += 1
    names = [one.name.removeprefix("slurm_queue_") for one in of.VPENSO_QUEUE]
    yield from _plain(of.VPENSO_QUEUE, [counted[name] for name in names])


def _partitions(nodes: Iterable[NodeRecord], jobs: Iterable[JobRecord]) -> Iterator[Family]:
    found: dict[str, list[int]] = {}
    for node in nodes:
        for name in node.partitions:
            sums = found.setdefault(name, [0] * len(of.VPENSO_PARTITION))
            for at, amount in enumerate(_cpu_states(node)):
                sums[at] += amount
    for job in jobs:
        # A job may name several, and waits for each.
        if job_word(job) == "PENDING":
            for name in job.partition.split(","):
                if name in found:
                    found[name][-1] += 1
    for at, metric in enumerate(of.VPENSO_PARTITION):
        yield single(metric, (((name,), sums[at]) for name, sums in found.items() if sums[at]))


def _owners(metrics: Sequence[Metric], jobs: Iterable[tuple[str, JobRecord]]) -> Iterator[Family]:
    counted: dict[str, Counter[str]] = {}
    for owner, job in jobs:
        counts = counted.setdefault(owner, Counter())
        match job_word(job):
            case "PENDING":
                counts["jobs_pending"] += 1
            case "RUNNING":
                counts["jobs_running"] += 1
                counts["cpus_running"] += int(allocated_cpus(job) or 0)
            case "SUSPENDED":
                counts["jobs_suspended"] += 1
            case _:
                pass
    for metric in metrics:
        name = metric.name.split("_", 2)[2]
        yield single(
            metric, (((owner,), counts[name]) for owner, counts in counted.items() if counts[name])
        )


def _nodes(nodes: Iterable[NodeRecord]) -> Iterator[Family]:
    rows = [
        ((node.name, node_state.long_state(node)), (*_cpu_states(node), *_memory(node)))
        for node in nodes
    ]
    for at, metric in enumerate(of.VPENSO_NODE):
        yield single(metric, ((labels, amounts[at]) for labels, amounts in rows))


def _memory(node: NodeRecord) -> tuple[int, int]:
    return node.allocated_memory or 0, node.memory or 0
