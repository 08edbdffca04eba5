"""Slurm's answer in the form that decisions ask it: by node name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.slurm.known import Fact, Known, Unknown
from penstock.slurm.state import FINISHED, Job, Node


def needs_nodes(job: Job) -> bool:
    """Whether a job still needs the nodes it names.

    COMPLETING decides first: an ended or requeued job with that flag has processes left. A job in a
    state that we do not know holds its nodes.
    """
    if "COMPLETING" in job.state:
        return True
    return not job.state & FINISHED and "PENDING" not in job.state


@dataclass(frozen=True, slots=True)
class SlurmSnapshot:
    """Node records by name, and unfinished jobs by the name of each node they hold."""

    nodes: Fact[Mapping[str, Node]]
    jobs_by_node: Fact[Mapping[str, tuple[Job, ...]]]
    everywhere: tuple[Job, ...] = ()
    """Jobs whose nodes cannot be read: they hold a node without a record as well."""

    @classmethod
    def of(cls, nodes: Fact[Mapping[str, Node]], jobs: Fact[tuple[Job, ...]]) -> SlurmSnapshot:
        """Index one snapshot. Jobs are in the order of their ids."""
        if isinstance(jobs, Unknown):
            return cls(nodes, jobs)
        found: defaultdict[str, list[Job]] = defaultdict(list)
        holding = [job for job in sorted(jobs.value, key=lambda job: job.id) if needs_nodes(job)]
        everywhere = tuple(job for job in holding if job.everywhere)
        known = nodes.value if everywhere and isinstance(nodes, Known) else ()
        named = {name for job in holding for name in job.nodes} if everywhere else ()
        for job in holding:
            for name in {*known, *named} if job.everywhere else job.nodes:
                found[name].append(job)
        holders = {name: tuple(held) for name, held in found.items()}
        return cls(nodes, Known(holders, jobs.as_of), everywhere)

    @property
    def records(self) -> Mapping[str, Node]:
        """The node records that are known."""
        return self.nodes.value if isinstance(self.nodes, Known) else {}

    @property
    def known_jobs(self) -> Mapping[str, tuple[Job, ...]]:
        """The unfinished jobs that are known, by the name of each node that has some."""
        return self.jobs_by_node.value if isinstance(self.jobs_by_node, Known) else {}

    @property
    def unknown_reason(self) -> str | None:
        """Why Slurm's word cannot be relied on, None when it can."""
        if isinstance(self.nodes, Unknown):
            return self.nodes.why
        if isinstance(self.jobs_by_node, Unknown):
            return self.jobs_by_node.why
        return None

    def node(self, name: str) -> Node | None:
        """The record of that name; None when there is none, or when Slurm's nodes are unknown."""
        return self.nodes.value.get(name) if isinstance(self.nodes, Known) else None

    def jobs(self, name: str) -> tuple[Job, ...] | None:
        """The unfinished jobs that hold that node; None when Slurm's jobs are unknown."""
        return (
            self.jobs_by_node.value.get(name, self.everywhere)
            if isinstance(self.jobs_by_node, Known)
            else None
        )
