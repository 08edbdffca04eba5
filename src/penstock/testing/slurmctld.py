"""A small slurmctld for tests: node, job and partition records, and what requests do to them.

It schedules nothing: tests say when nodes register and jobs start and end. Its errors and the
effect of each state request are those that Slurm 26.05 showed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.slurm import hostlist
from penstock.testing import partitions

HOLDING = {"RUNNING", "COMPLETING", "SUSPENDED"}


class RefusedError(Exception):
    """The request failed, with Slurm's error number and words."""

    def __init__(self, number: int, words: str) -> None:
        super().__init__(words)
        self.number = number
        self.words = words


INVALID_NODE = (2018, "Invalid node name specified")
INVALID_PARTITION = (2000, "Invalid partition name specified")
INVALID_QOS = (2066, "Invalid qos specification")
PARTITION_IN_USE = (2075, "Partition is in use")
FEATURES = (2031, "Active features not subset of available features")
INVALID_JOB = (2017, "Invalid job id specified")
NODES_BUSY = (2016, "Requested nodes are busy")
INVALID_TRANSITION = (2180, "Invalid node state transition")


@dataclass
class FakeNode:
    """A node record: base state without jobs, and flags. `started` is Unix seconds."""

    name: str
    base: str = "IDLE"
    flags: set[str] = field(default_factory=lambda: {"DYNAMIC_NORM"})
    reason: str = ""
    reason_user: str = ""
    comment: str = ""
    features: list[str] = field(default_factory=list[str])
    active_features: list[str] = field(default_factory=list[str])
    partitions: list[str] = field(default_factory=list[str])
    address: str = "127.0.0.1"
    topology: str = ""
    started: int = 1
    weight: int = 1


@dataclass
class FakeJob:
    """A job record. `start` is Unix seconds, `time_limit` minutes, None for unlimited."""

    id: int
    nodes: list[str]
    state: set[str] = field(default_factory=lambda: {"RUNNING"})
    name: str = "job"
    user: str = "slurm"
    partition: str = "all"
    start: int = 1
    time_limit: int | None = None

    def holds(self, node: str) -> bool:
        """Whether it holds that node."""
        return node in self.nodes and bool(self.state & HOLDING)


class FakeSlurmctld:
    """The records. Change them by its methods, or by hand followed by `touch`."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.nodes: dict[str, FakeNode] = {}
        self.jobs: dict[int, FakeJob] = {}
        self.partitions: dict[str, dict[str, Any]] = {}
        self.responding = True
        self.reconfigured = 0
        self.changed = int(clock())
        """Unix second of the last change; one stamp does for nodes and jobs."""

    def touch(self) -> None:
        """Something changed: the next request for changes gets everything."""
        self.changed = int(self.clock())

    def register(self, name: str, **values: Any) -> FakeNode:
        """A slurmd registered."""
        node = self.nodes[name] = FakeNode(name, **values)
        self.touch()
        return node

    def lose(self, *names: str) -> None:
        """These records are gone, as after a restart without saved state; all without names."""
        for name in names or tuple(self.nodes):
            del self.nodes[name]
        self.touch()

    def run(self, *nodes: str, **values: Any) -> FakeJob:
        """A job started on these nodes."""
        job = FakeJob(max(self.jobs, default=0) + 1, list(nodes), **values)
        self.jobs[job.id] = job
        self.touch()
        return job

    def finish(self, job: FakeJob, state: str = "COMPLETED") -> None:
        """The job ended and left its nodes."""
        job.state = {state}
        self.touch()

    def held(self, name: str) -> bool:
        """Whether a job holds the node."""
        return any(job.holds(name) for job in self.jobs.values())

    def states(self, node: FakeNode) -> list[str]:
        """Base state and flags as slurmrestd lists them; a suspended job leaves a node IDLE."""
        held = set[str]().union(*(j.state for j in self.jobs.values() if j.holds(node.name)))
        base = "ALLOCATED" if "RUNNING" in held and node.base == "IDLE" else node.base
        return [base, *sorted(node.flags | (held & {"COMPLETING"}))]

    def update_node(
        self, name: str, states: Sequence[str], values: dict[str, Any], user: str = "slurm"
    ) -> None:
        """What `scontrol update node` does. Raises RefusedError."""
        node = self._node(name)
        for state in states:
            if state == "DRAIN":
                node.flags.add("DRAIN")
            elif state in {"UNDRAIN", "RESUME", "IDLE"}:
                node.flags -= {"DRAIN", "FAIL"}
                if state != "UNDRAIN" or node.base != "DOWN":
                    node.reason = node.reason_user = ""
                if state != "UNDRAIN":
                    node.base = "IDLE"
            elif state == "DOWN":
                node.base = "DOWN"
            else:
                raise RefusedError(*INVALID_TRANSITION)
        if "reason" in values:
            node.reason, node.reason_user = values["reason"], user
        for field_, key in (("comment", "comment"), ("topology", "topology_str")):
            if key in values:
                setattr(node, field_, values[key])
        if "weight" in values:
            node.weight = int(values["weight"]["number"])
        self._features(node, values)
        self.touch()

    def delete_node(self, name: str) -> None:
        """What `scontrol delete node` does. Raises RefusedError."""
        self._node(name)
        if self.held(name):
            raise RefusedError(*NODES_BUSY)
        self.lose(name)

    def cancel(self, job_id: int) -> None:
        """What `scancel` does. Raises RefusedError."""
        if job_id not in self.jobs:
            raise RefusedError(*INVALID_JOB)
        self.finish(self.jobs[job_id], "CANCELLED")

    def update_partition(self, body: dict[str, Any]) -> None:
        """What `scontrol create` and `update partition` do. Raises RefusedError.

        Of node sets it knows ALL and those that are called as a feature of a node.
        """
        name = body["name"]
        record = partitions.changed(self.partitions.get(name) or partitions.new(name), body)
        if any(body.get("qos", {}).get(key) not in (None, "", "ALL") for key in record["qos"]):
            # It has set all that it looks at earlier, unless the partition is new.
            if name in self.partitions:
                self.partitions[name] = {**record, "qos": self.partitions[name]["qos"]}
            raise RefusedError(*INVALID_QOS)
        configured: str | None = body.get("nodes", {}).get("configured")
        if configured is not None:
            words = hostlist.split(configured)
            sets = [word for word in words if word not in self.nodes and self._in_set(word)]
            named = [n for word in words if word not in sets for n in hostlist.expand(word)]
            if not self.nodes.keys() >= set(named):
                raise RefusedError(*INVALID_NODE)
            inside = [n for word in sets for n in self._in_set(word)]
            record = partitions.placed(record, configured, [*named, *inside], sets)
        if "DEFAULT" in record["flags"]:
            for other in self.partitions.values():
                other["flags"] = [one for one in other["flags"] if one != "DEFAULT"]
        self.partitions[name] = record

    def delete_partition(self, name: str) -> None:
        """What `scontrol delete partition` does. Raises RefusedError."""
        if name not in self.partitions:
            raise RefusedError(*INVALID_PARTITION)
        if any(job.partition == name and job.state & HOLDING for job in self.jobs.values()):
            raise RefusedError(*PARTITION_IN_USE)
        del self.partitions[name]

    def _in_set(self, word: str) -> list[str]:
        return [name for name, node in self.nodes.items() if word == "ALL" or word in node.features]

    def _features(self, node: FakeNode, values: dict[str, Any]) -> None:
        available = list(values.get("features", node.features))
        # Features that are given alone become the active ones, as far as they add to them.
        active = list(values.get("features_act", node.active_features))
        if not set(active) <= set(available):
            raise RefusedError(*FEATURES)
        if "features" in values and "features_act" not in values:
            active = available
        node.features, node.active_features = available, active

    def _node(self, name: str) -> FakeNode:
        if name not in self.nodes:
            raise RefusedError(*INVALID_NODE)
        return self.nodes[name]
