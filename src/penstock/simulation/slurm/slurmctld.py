"""A small slurmctld for tests: node, job and partition records, and what requests do to them.

It schedules nothing: tests decide when nodes register and jobs start and end. Its errors and the
effect of each state request are those that Slurm 26.05 showed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.simulation.slurm import partitions, reservations
from penstock.slurm import gres, hostlist
from penstock.slurm.conf.document import Document
from penstock.slurm.partition.declaration import ALL, NODE_SET, NODES, Change, partition_lines
from penstock.slurm.partition.update import Update, call

ASKED_S, ANSWERS_S = 1.0, 0.5
"""When a node that comes back registers, and from when on it may be thought to answer."""
HOLDING = {"RUNNING", "COMPLETING", "SUSPENDED"}
UNFINISHED = HOLDING | {"PENDING"}


class SlurmctldError(Exception):
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
INVALID_STATE = (2004, "Invalid node state specified")
NODE_EXISTS = (2168, "Node already exists in the node table")
NODES_BUSY = (2016, "Requested nodes are busy")
INVALID_TRANSITION = (2180, "Invalid node state transition")
INVALID_TIME = (2054, "Invalid time specified")
INVALID_RESERVATION = (2098, "Requested reservation is invalid")
FILES = (2072, "Invalid generic resource (gres) specification")
NO_TOPOLOGY = (2178, "Requested topology configuration is not available")


@dataclass
class SimulatedSlurmNode:
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
    gres: str = ""
    extra: str = ""
    gres_used: str = ""
    gres_found: str | None = None
    """What its slurmd had when it registered last; as `gres` before that."""
    reason_since: int = 0
    registers_at: float | None = None
    """When it is asked to register."""


@dataclass
class SimulatedJob:
    """A job record. `start` is Unix seconds, `time_limit` minutes, None for unlimited."""

    id: int
    nodes: list[str]
    state: set[str] = field(default_factory=lambda: {"RUNNING"})
    name: str = "job"
    user: str = "slurm"
    partition: str = "all"
    start: int = 1
    time_limit: int | None = None
    end: int = 0
    reason: str = "None"

    def uses(self, node: str) -> bool:
        """Whether it holds that node."""
        return node in self.nodes and bool(self.state & HOLDING)


class SimulatedSlurmctld:
    """The records. Change them by its methods, or by hand followed by `touch`."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.nodes: dict[str, SimulatedSlurmNode] = {}
        self.jobs: dict[int, SimulatedJob] = {}
        self.forgotten: dict[int, SimulatedJob] = {}
        """Ended jobs that only slurmdbd has."""
        self._partitions: dict[str, dict[str, Any]] = {}
        self._moved = False
        """Whether nodes came or went since the partitions were last shown."""
        self._placed: dict[str, str] = {}
        """By partition its nodes as they were given."""
        self._sets: dict[str, str] = {}
        """Features by the node set that slurm.conf makes of them."""
        self.in_file: frozenset[str] = frozenset()
        """Partitions of the last file in its folder: it was read, or requests made all of it."""
        self.defunct: list[SimulatedJob] = []
        """Jobs that ended because a file that was read did not have their partition any more."""
        self.reservations: dict[str, dict[str, Any]] = {}
        self.maintained: frozenset[str] = frozenset()
        """Nodes in a maintenance reservation that has begun, when time last passed."""
        self.topologies: set[str] | None = None
        """Names of topology.yaml, before the colon; None takes any."""
        self.fixed_gres = False
        """Whether generic resources are files, whose counts do not change."""
        self.hungry = False
        """Whether jobs wait that take one of each generic resource in the first moment."""
        self.responding = True
        self.hosts: tuple[str, ...] = ("slurmctld-0",)
        """Hostnames on which a slurmctld runs."""
        self.deaf: set[str] = set()
        """Those of them that do not answer."""
        self.future: dict[str, SimulatedSlurmNode] = {}
        """Records in state FUTURE, which a list shows only when it is asked for them."""
        self.asks: Callable[[str], None] = lambda _: None
        """Called with each address at which a slurmd is asked to register that never did."""
        self.began = int(clock())
        """Unix second of its start."""
        self.newest_parser = ""
        """Best data parser of its slurmrestd; empty when that has all of them."""
        self.had_no_node_calls = False
        """Whether slurmrestd could create no nodes at some time: a client may still assume it."""
        self.lacks: tuple[str, str] | None = None
        """A list and the field that slurmrestd leaves out of its records, `a.b` for one within."""
        self.reconfigured = 0
        self.rereads: Callable[[], None] = lambda: None
        """Called when it is asked to reconfigure, to read its files."""
        self.cluster_name = ""
        self.accounted = False
        """Whether its slurm.conf names a slurmdbd."""
        self.slurmdbd: Callable[[], bool] = lambda: True
        """Whether that answers, and its database with it."""
        self.registered = False
        """Whether slurmdbd has the cluster: it registers when it reads its files, and only then."""
        self.changed = int(clock())
        """Unix second of the last change; one stamp does for nodes and jobs."""

    @property
    def partitions(self) -> dict[str, dict[str, Any]]:
        """The partitions by name, as slurmrestd shows them."""
        if self._moved:
            self._moved = False
            self._place(*self._partitions)
        return self._partitions

    def touch(self) -> None:
        """Something changed: the next request for changes gets everything."""
        self.changed = int(self.clock())

    def register(self, name: str, **values: Any) -> SimulatedSlurmNode:
        """A slurmd registered."""
        node = self.nodes[name] = SimulatedSlurmNode(name, **values)
        self._moved = True
        self.touch()
        return node

    def lose(self, *names: str) -> None:
        """These records are gone, as after a restart without saved state; all without names."""
        for name in names or tuple(self.nodes):
            del self.nodes[name]
            for one in self.reservations.values():
                if name in (named := reservations.nodes_of(one)):
                    one |= reservations.placed([other for other in named if other != name])
        self._moved = True
        self.pass_time()
        self.touch()

    def read(self, slurm_conf: str) -> None:
        """It starts or is reconfigured: its partitions are those of the file.

        Jobs of a partition that the file does not have end, pending ones too; what waits for
        several partitions goes on in the others. Seen with Slurm 26.05.
        """
        before = frozenset(self._partitions)
        lines = slurm_conf.splitlines()
        self.cluster_name = next((one[12:] for one in lines if one.startswith("ClusterName=")), "")
        self.accounted = "AccountingStorageType=accounting_storage/slurmdbd" in lines
        self.registered = self.accounted and self.slurmdbd()
        records = Document.parse(slurm_conf).records(NODE_SET)
        self._sets = {one.name: one.get("Feature") or "" for one in records}
        self.partitions.clear()
        self._placed.clear()
        for name, one in partition_lines(slurm_conf).items():
            asked = call(Change(name, None, one), {})
            record = {**partitions.new(name), "minimums": {"nodes": 0}}
            if isinstance(asked, Update):
                record = partitions.changed(record, asked.body)
            self.partitions[name] = record
            self._placed[name] = one.keys.get(NODES.lower(), "")
        self._moved = True
        self.has(slurm_conf)
        self._end_defunct(before - self.in_file)

    def has(self, slurm_conf: str) -> None:
        """A file is in its folder whose partitions it has, by reading it or by requests."""
        self.in_file = frozenset(partition_lines(slurm_conf))

    def _end_defunct(self, gone: frozenset[str]) -> None:
        for job in self.jobs.values():
            left = [name for name in job.partition.split(",") if name not in gone]
            if not job.state & UNFINISHED or left == job.partition.split(","):
                continue
            if left:
                job.partition = ",".join(left)
                continue
            self.defunct.append(job)
            self.finish(job, "NODE_FAIL")

    def run(self, *nodes: str, **values: Any) -> SimulatedJob:
        """A job started on these nodes."""
        last = max((*self.jobs, *self.forgotten), default=0)
        job = SimulatedJob(last + 1, list(nodes), **values)
        self.jobs[job.id] = job
        self.touch()
        return job

    def finish(self, job: SimulatedJob, state: str = "COMPLETED") -> None:
        """The job ended and left its nodes."""
        job.state, job.end = {state}, int(self.clock())
        self.touch()

    def forget_jobs(self) -> None:
        """What slurmctld does after MinJobAge with jobs that ended."""
        for number, job in list(self.jobs.items()):
            if not job.state & UNFINISHED:
                self.forgotten[number] = self.jobs.pop(number)
        self.touch()

    def is_allocated(self, name: str) -> bool:
        """Whether a job holds the node."""
        return any(job.uses(name) for job in self.jobs.values())

    def states(self, node: SimulatedSlurmNode) -> list[str]:
        """Base state and flags as slurmrestd lists them; a suspended job leaves a node IDLE."""
        self._registered(node)
        held = set[str]().union(*(j.state for j in self.jobs.values() if j.uses(node.name)))
        base = "ALLOCATED" if "RUNNING" in held and node.base == "IDLE" else node.base
        reserved = {"MAINTENANCE", "RESERVED"} if node.name in self.maintained else set[str]()
        return [base, *sorted(node.flags | (held & {"COMPLETING"}) | reserved)]

    def new_node(self, conf: str) -> None:
        """What `scontrol create node` does, for state FUTURE. Raises SlurmctldError."""
        pairs = (word.partition("=") for word in conf.split())
        values = {key: value for key, _, value in pairs}
        names, hosts = values["NodeName"].split(","), values["NodeAddr"].split(",")
        if values.get("State") != "FUTURE" or len(names) != len(hosts):
            raise SlurmctldError(*INVALID_STATE)
        if {*names} & {*self.nodes, *self.future}:
            raise SlurmctldError(*NODE_EXISTS)
        for name, host in zip(names, hosts, strict=True):
            self.future[name] = SimulatedSlurmNode(name, base="FUTURE", address=host, started=0)

    def update_nodes(self, names: str, states: Sequence[str], values: dict[str, Any]) -> None:
        """What `scontrol update node` does for several. Raises SlurmctldError."""
        for name in hostlist.expand(names):
            self.update_node(name, states, values)

    def update_node(
        self, name: str, states: Sequence[str], values: dict[str, Any], user: str = "slurm"
    ) -> None:
        """What `scontrol update node` does. Raises SlurmctldError."""
        if name in self.future:
            if list(states) != ["DOWN"]:
                raise SlurmctldError(*INVALID_TRANSITION)
            self.nodes[name] = self.future.pop(name)
            self._moved = True
        node = self._node(name)
        self._registered(node)
        for state in states:
            if state == "DRAIN":
                node.flags.add("DRAIN")
            elif state in {"UNDRAIN", "RESUME", "IDLE"}:
                node.registers_at = self.clock() + ASKED_S
                for one in self.nodes.values():
                    if not one.started:
                        self.asks(one.address)
                node.flags -= {"DRAIN", "FAIL"}
                if state != "UNDRAIN" or node.base != "DOWN":
                    node.reason = node.reason_user = ""
                if state != "UNDRAIN":
                    node.base = "IDLE"
            elif state == "DOWN":
                node.base = "DOWN"
            elif state in {"POWER_DOWN", "POWER_DRAIN"} and "CLOUD" in node.flags:
                # Both together are POWER_DOWN_ASAP. Seen with Slurm 26.05.
                node.flags |= {state, "DRAIN"} if state == "POWER_DRAIN" else {state}
                if state == "POWER_DRAIN" and not node.reason:
                    node.reason, node.reason_user = "POWER_DOWN_ASAP", ""
            else:
                raise SlurmctldError(*INVALID_TRANSITION)
        if "reason" in values:
            self._reason(node, values["reason"], user)
        places: str = values.get("topology_str") or ""
        names = {one.partition(":")[0] for one in places.split(",") if one}
        if self.topologies is not None and not names <= self.topologies:
            raise SlurmctldError(*NO_TOPOLOGY)
        if values.get("gres") and self.fixed_gres:
            raise SlurmctldError(*FILES)
        if "gres" in values and node.gres_found is None:
            node.gres_found = node.gres
        for key in ("comment", "gres", "extra"):
            if key in values:
                setattr(node, key, values[key])
        node.topology = values.get("topology_str", node.topology)
        if "weight" in values:
            node.weight = int(values["weight"]["number"])
        self._features(node, values)
        self.touch()

    def delete_node(self, name: str) -> None:
        """What `scontrol delete node` does. Raises SlurmctldError."""
        if self.future.pop(name, None) is not None:
            return
        self._node(name)
        if self.is_allocated(name):
            raise SlurmctldError(*NODES_BUSY)
        self.lose(name)

    def delete_nodes(self, names: str) -> None:
        """The same for several: those that are there go though others are not."""
        refused: SlurmctldError | None = None
        for name in hostlist.expand(names):
            try:
                self.delete_node(name)
            except SlurmctldError as error:
                refused = error
        if refused is not None:
            raise refused

    def cancel(self, job_id: int) -> None:
        """What `scancel` does. Raises SlurmctldError."""
        if job_id not in self.jobs:
            raise SlurmctldError(*INVALID_JOB)
        self.finish(self.jobs[job_id], "CANCELLED")

    def update_partition(self, body: dict[str, Any]) -> None:
        """What `scontrol create` and `update partition` do. Raises SlurmctldError.

        Of node sets it knows ALL and those that are called as a feature of a node.
        """
        name = body["name"]
        record = partitions.changed(self.partitions.get(name) or partitions.new(name), body)
        if any(body.get("qos", {}).get(key) not in (None, "", "ALL") for key in record["qos"]):
            # It has set all that it looks at earlier, unless the partition is new.
            if name in self.partitions:
                self.partitions[name] = {**record, "qos": self.partitions[name]["qos"]}
            raise SlurmctldError(*INVALID_QOS)
        configured: str | None = body.get("nodes", {}).get("configured")
        if configured is not None:
            if not self.nodes.keys() >= set(self._split(configured)[1]):
                raise SlurmctldError(*INVALID_NODE)
            self._placed[name] = configured
        if "DEFAULT" in record["flags"]:
            for other in self.partitions.values():
                other["flags"] = [one for one in other["flags"] if one != "DEFAULT"]
        self.partitions[name] = record
        self._place(name)

    def delete_partition(self, name: str) -> None:
        """What `scontrol delete partition` does. Raises SlurmctldError."""
        if name not in self.partitions:
            raise SlurmctldError(*INVALID_PARTITION)
        unfinished = [job for job in self.jobs.values() if job.state & UNFINISHED]
        if any(name in job.partition.split(",") for job in unfinished):
            raise SlurmctldError(*PARTITION_IN_USE)
        del self.partitions[name]
        self._placed.pop(name, None)

    def _place(self, *names: str) -> None:
        """Nodes come to these partitions and leave them."""
        for name in names:
            given = self._placed.get(name)
            if given is None:
                continue
            sets, named = self._split(given)
            there = [n for n in named if n in self.nodes]
            there += [n for word in sets for n in self._in_set(word)]
            self._partitions[name] = partitions.placed(self._partitions[name], given, there, sets)

    def _split(self, configured: str) -> tuple[list[str], list[str]]:
        """Node sets and nodes that are given as a partition's."""
        words = hostlist.split(configured)
        sets = [
            word
            for word in words
            if word in (ALL, *self._sets) or (word not in self.nodes and self._in_set(word))
        ]
        return sets, [n for word in words if word not in sets for n in hostlist.expand(word)]

    def update_reservation(self, body: dict[str, Any]) -> None:
        """What `scontrol create` and `update reservation` do. Raises SlurmctldError."""
        self.pass_time()
        name = body["name"]
        old = self.reservations.get(name)
        nodes = hostlist.expand(",".join(body["node_list"])) if "node_list" in body else None
        if nodes is not None and not self.nodes.keys() >= set(nodes):
            raise SlurmctldError(*INVALID_NODE)
        new = reservations.changed(old, body, nodes)
        if not (new.get("users") or new.get("accounts")) or "start_time" not in new:
            raise SlurmctldError(*INVALID_RESERVATION)
        if not reservations.timely(new, body, self.clock(), new=old is None):
            raise SlurmctldError(*INVALID_TIME)
        self.reservations[name] = new
        self.pass_time()

    def delete_reservation(self, name: str) -> None:
        """What `scontrol delete reservation` does. Raises SlurmctldError."""
        self.pass_time()
        if self.reservations.pop(name, None) is None:
            raise SlurmctldError(*INVALID_RESERVATION)
        self.pass_time()

    def pass_time(self) -> None:
        """Reservations begin, end, and come again."""
        now = self.clock()
        left = {name: reservations.later(one, now) for name, one in self.reservations.items()}
        self.reservations = {name: one for name, one in left.items() if one is not None}
        running = [one for one in self.reservations.values() if reservations.maintained(one, now)]
        found = frozenset(name for one in running for name in reservations.nodes_of(one))
        if found != self.maintained:
            self.maintained = found
            self.touch()

    def _in_set(self, word: str) -> list[str]:
        feature = self._sets.get(word, word)
        return [n for n, node in self.nodes.items() if word == ALL or feature in node.features]

    def _reason(self, node: SimulatedSlurmNode, words: str, user: str) -> None:
        node.reason, node.reason_user, node.reason_since = words, user, int(self.clock())

    def _registered(self, node: SimulatedSlurmNode) -> None:
        """It registered when it was asked to, and its resources were compared."""
        if node.registers_at is None:
            return
        early = node.registers_at - ASKED_S + ANSWERS_S
        if self.hungry and "DRAIN" not in node.flags and self.clock() >= early:
            node.gres_used = gres.text(dict.fromkeys(gres.counts(node.gres), 1))
        if self.clock() < node.registers_at:
            return
        node.registers_at = None
        found = gres.counts(node.gres if node.gres_found is None else node.gres_found)
        wanted, busy = gres.counts(node.gres), gres.counts(node.gres_used)
        taken = [one for one in wanted if found.get(one) != wanted[one] and busy.get(one)]
        if not taken:
            node.gres_found = node.gres
            return
        node.flags |= {"DRAIN", "INVALID_REG"}
        numbers = f"{found.get(taken[0], 0)} != {wanted[taken[0]]}"
        words = f"gres/{taken[0]} count changed and jobs are using them ({numbers})"
        self._reason(node, words, "slurm")
        self.touch()

    def _features(self, node: SimulatedSlurmNode, values: dict[str, Any]) -> None:
        available = list(values.get("features", node.features))
        # Features that are given alone become the active ones, as far as they add to them.
        active = list(values.get("features_act", node.active_features))
        if not set(active) <= set(available):
            raise SlurmctldError(*FEATURES)
        if "features" in values and "features_act" not in values:
            active = available
        node.features, node.active_features = available, active

    def _node(self, name: str) -> SimulatedSlurmNode:
        if name not in self.nodes:
            raise SlurmctldError(*INVALID_NODE)
        return self.nodes[name]
