"""slurmrestd's replies, partial: only what Penstock reads, from v0.0.42 to v0.0.45.

Decoding a partial struct costs a fraction of a full model and does not break on new fields.
Numbers that Slurm may not know come as `{set, infinite, number}`. A field that every parser has is
required: a reply without it is no answer. A field that only some have is None where it is absent,
which means unknown and never a value.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec import Raw, Struct, field

from penstock.slurm import hostlist
from penstock.slurm.state import FINISHED, Job, Node

T = TypeVar("T")
_REPLACED = "\N{REPLACEMENT CHARACTER}"
"""In the place of bytes that are not UTF-8: several names may look the same."""
Strings = tuple[str, ...]


class Wire(Struct, frozen=True, gc=False):
    """Base of every struct on the wire."""


class Number(Wire, frozen=True):
    """A number that may be unset or infinite."""

    set: bool = False
    infinite: bool = False
    number: float = 0

    def value(self) -> int | None:
        """The number, or None when it is unset or infinite."""
        return int(self.number) if self.set and not self.infinite else None


class WireError(Wire, frozen=True):
    """One entry of `errors`."""

    description: str = ""
    error_number: int = 0
    error: str = ""
    source: str = ""

    def words(self) -> str:
        """Slurm's words, each text once."""
        known = self.error if self.error_number else ""
        return ": ".join(dict.fromkeys(part for part in (self.description, known) if part))


class WireWarning(Wire, frozen=True):
    """One entry of `warnings`."""

    description: str = ""
    source: str = ""


class MetaSlurm(Wire, frozen=True):
    """Which slurmrestd answered."""

    release: str = ""


class Meta(Wire, frozen=True):
    """Metadata of a reply."""

    slurm: MetaSlurm = MetaSlurm()


class Reply(Wire, frozen=True):
    """What every reply has."""

    errors: tuple[WireError, ...] | None = None
    warnings: tuple[WireWarning, ...] | None = None
    meta: Meta | None = None

    @property
    def release(self) -> str:
        """The release of slurmrestd, such as 26.05.5; empty if the reply has none."""
        return self.meta.slurm.release if self.meta is not None else ""


class WireNode(Wire, frozen=True):
    """One node record. v0.0.42 has no `topology`."""

    name: str
    state: Strings
    reason: str
    reason_set_by_user: str
    reason_changed_at: Number
    comment: str
    features: Strings | None
    active_features: Strings | None
    partitions: Strings | None
    address: str
    hostname: str
    weight: int
    gres: str
    gres_used: str
    boot_time: Number
    slurmd_start_time: Number
    topology: str | None = None
    version: str = ""

    def node(self) -> Node:
        """The record as decisions read it."""
        return Node(
            name=self.name,
            state=frozenset(self.state),
            reason=self.reason,
            reason_user=self.reason_set_by_user,
            reason_since=self.reason_changed_at.value() or 0,
            comment=self.comment,
            features=self.features or (),
            active_features=self.active_features or (),
            partitions=self.partitions or (),
            address=self.address,
            hostname=self.hostname,
            topology=self.topology,
            weight=self.weight,
            gres=self.gres,
            gres_used=self.gres_used,
            boot_time=self.boot_time.value() or 0,
            slurmd_start_time=self.slurmd_start_time.value() or 0,
            version=self.version,
        )


class NodesReply(Reply, frozen=True):
    """`GET nodes/` and `GET node/{name}`."""

    nodes: tuple[WireNode, ...] | None = None
    last_update: Number = Number()


class WireJob(Wire, frozen=True):
    """One job record."""

    job_id: int
    job_state: Strings
    nodes: str
    start_time: Number
    time_limit: Number
    name: str
    user_name: str
    partition: str

    def finished(self) -> bool:
        """Whether it ended and left its nodes."""
        return bool(FINISHED.intersection(self.job_state)) and "COMPLETING" not in self.job_state

    def job(self, most: int = hostlist.LIMIT) -> Job:
        """The record as decisions read it.

        One whose nodes cannot be read, or are more than `most`, holds every node.
        """
        nodes: tuple[str, ...] = ()
        everywhere = True
        with contextlib.suppress(hostlist.HostListError):
            if hostlist.count(self.nodes) <= most:
                nodes, everywhere = tuple(hostlist.expand(self.nodes)), _REPLACED in self.nodes
        return Job(
            id=self.job_id,
            state=frozenset(self.job_state),
            nodes=nodes,
            everywhere=everywhere,
            start_time=self.start_time.value() or None,
            time_limit=self.time_limit.value(),
            name=self.name,
            user=self.user_name,
            partition=self.partition,
        )


class JobsReply(Reply, frozen=True):
    """`GET jobs/` and `GET job/{id}`."""

    jobs: tuple[WireJob, ...] | None = None
    last_update: Number = Number()


class SubmitReply(Reply, frozen=True):
    """`POST job/submit`."""

    job_id: int | None = None


class Ping(Wire, frozen=True):
    """Whether one slurmctld of the cluster answers. `latency` is in microseconds."""

    hostname: str = ""
    responding: bool | None = None
    primary: bool = False
    latency: int = 0
    status: str = ""
    pinged: str = ""

    @property
    def up(self) -> bool:
        """Whether it answers, in the old spelling (`pinged`) or the new one."""
        return self.pinged == "UP" if self.responding is None else self.responding


class PingReply(Reply, frozen=True):
    """`GET ping/`."""

    pings: tuple[Ping, ...] | None = None


class Diag(Wire, frozen=True):
    """Counters of slurmctld. Times are Unix seconds."""

    server_thread_count: int = 0
    agent_queue_size: int = 0
    jobs_pending: int = 0
    jobs_running: int = 0
    req_time: Number = Number()
    req_time_start: Number = Number()

    @property
    def counted_s(self) -> float | None:
        """Seconds since its counters began, its least uptime; None if the reply has none.

        Counters begin again when slurmctld starts, and at each midnight (UTC). Source: sdiag(1).
        """
        now, since = self.req_time.value(), self.req_time_start.value()
        return float(now - since) if now and since and since <= now else None


class DiagReply(Reply, frozen=True):
    """`GET diag/`."""

    statistics: Diag | None = None


class ClusterController(Wire, frozen=True):
    """Where slurmdbd reaches the slurmctld of a cluster; empty and 0 while none is registered."""

    host: str = ""
    port: int = 0


class ClusterRecord(Wire, frozen=True):
    """One cluster in slurmdbd's records."""

    name: str = ""
    controller: ClusterController = ClusterController()


class ClustersReply(Reply, frozen=True):
    """`GET clusters/` of slurmdbd's part of the API."""

    clusters: tuple[ClusterRecord, ...] | None = None


class PartitionNodes(Wire, frozen=True):
    """Which nodes a partition has, and from which jobs may be submitted."""

    configured: str
    total: int
    allowed_allocation: str | None = None


class PartitionState(Wire, frozen=True):
    """Whether a partition takes jobs, and what jobs share. The latter are new in v0.0.45."""

    state: Strings | None = None
    oversubscribe: str | None = None
    exclusive: str | None = None


class Allowed(Wire, frozen=True):
    """Who may and who may not use a partition; `assigned` is its own QOS."""

    allowed: str | None = None
    deny: str | None = None
    assigned: str | None = None


class PartitionTres(Wire, frozen=True):
    """What the use of a partition costs."""

    billing_weights: str | None = None


class PartitionCpus(Wire, frozen=True):
    """How tasks are bound: names from v0.0.45 on, a number of flags before."""

    task_binding: Strings | int | None = None


class PartitionDefaults(Wire, frozen=True):
    """What jobs get that ask for nothing."""

    partition_memory_per_cpu: Number | None = None
    partition_memory_per_node: Number | None = None
    time: Number | None = None


class PartitionMaximums(Wire, frozen=True):
    """What jobs may have at most."""

    cpus_per_node: Number | None = None
    cpus_per_socket: Number | None = None
    partition_memory_per_cpu: Number | None = None
    partition_memory_per_node: Number | None = None
    nodes: Number | None = None
    time: Number | None = None
    over_time_limit: Number | None = None


class PartitionMinimums(Wire, frozen=True):
    """What jobs must have at least."""

    nodes: int | None = None


class PartitionPriority(Wire, frozen=True):
    """How a partition's jobs are preferred."""

    job_factor: int | None = None
    tier: int | None = None


class Partition(Wire, frozen=True):
    """One partition record: the fields that are compared with the declaration.

    `flags` and `preempt_mode` are new in v0.0.45, `topology` in v0.0.43.
    """

    name: str
    nodes: PartitionNodes
    node_sets: str
    partition: PartitionState = PartitionState()
    accounts: Allowed = Allowed()
    groups: Allowed = Allowed()
    qos: Allowed = Allowed()
    alternate: str | None = None
    tres: PartitionTres = PartitionTres()
    cpus: PartitionCpus = PartitionCpus()
    defaults: PartitionDefaults = PartitionDefaults()
    flags: Strings | None = None
    grace_time: int | None = None
    maximums: PartitionMaximums = PartitionMaximums()
    minimums: PartitionMinimums = PartitionMinimums()
    preempt_mode: Strings | None = None
    priority: PartitionPriority = PartitionPriority()
    topology: str | None = None


class PartitionsReply(Reply, frozen=True):
    """`GET partitions/` and `GET partition/{name}`."""

    partitions: tuple[Partition, ...] | None = None
    last_update: Number = Number()


class DataParser(Wire, frozen=True):
    """One data parser plugin."""

    plugin: str = ""


class SlurmInfo(Wire, frozen=True):
    """Slurm's own part of the OpenAPI document's `info`."""

    data_parsers: tuple[DataParser, ...] | None = None
    release: str = ""


class OpenApiInfo(Wire, frozen=True):
    """`info` of the OpenAPI document. 24.11 has no `x-slurm` in it."""

    slurm: SlurmInfo | None = field(name="x-slurm", default=None)
    version: str = ""


class OpenApi(Wire, frozen=True):
    """`GET /openapi/v3`, a document of nearly a megabyte of which this is wanted."""

    info: OpenApiInfo = OpenApiInfo()
    paths: dict[str, Raw] = {}

    @property
    def release(self) -> str:
        """The release of slurmrestd, such as 26.05.5; empty if the reply has none."""
        message = self.info.slurm.release if self.info.slurm is not None else ""
        return message or self.info.version.partition("&")[0].removeprefix("Slurm-")

    @property
    def parsers(self) -> frozenset[str]:
        """The data parsers that are offered, by name or else by the paths that begin with them."""
        named = self.info.slurm.data_parsers if self.info.slurm is not None else None
        if named:
            return frozenset(one.plugin.rpartition("/")[2] for one in named)
        parts = (path.split("/") for path in self.paths)
        return frozenset(one[2] for one in parts if len(one) > 3 and one[1] == "slurm")


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A whole list, and the Unix time with which to ask for changes since."""

    items: tuple[T, ...]
    last_update: int
