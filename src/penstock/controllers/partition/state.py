"""State of a cluster's partitions that is kept between reconciles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic

from penstock.api.kubernetes.meta import KubeObject
from penstock.controllers.partition.source import C
from penstock.controllers.partition.verification import PartitionVerifier
from penstock.controllers.runtime.report import Events
from penstock.render.config.sections import with_partitions_of
from penstock.slurm.partition.declaration import PartitionLine


@dataclass(frozen=True, slots=True)
class Rejection:
    """A declaration that slurmctld rejected, its words, and the time (monotonic seconds)."""

    declared: PartitionLine | None
    words: str
    at: float


@dataclass(frozen=True, slots=True)
class AppliedPartitions(Generic[C]):
    """The cluster from which files are rendered."""

    cluster: C
    live: bool = False
    """Whether slurmctld got all changes by REST calls and need not read its file."""
    has_unsaved: bool = False
    """Whether slurmctld got changes by REST calls that its file does not have."""


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """Object and recorder of events, and the desired slurm.conf."""

    events: Events
    obj: KubeObject
    text: str


@dataclass(slots=True)
class State:
    """State of one cluster that outlives a reconcile of its object."""

    verifier: PartitionVerifier = field(default_factory=PartitionVerifier)
    has_compared: bool = False
    """Whether this process has compared the declaration with the file once."""
    rejected: dict[str, Rejection] = field(default_factory=dict[str, Rejection])
    sent: dict[str, PartitionLine | None] = field(default_factory=dict[str, PartitionLine | None])
    """Partitions that REST calls changed in slurmctld and the file does not have yet."""
    file: str = ""
    """The startup slurm.conf at the time of the last of these calls."""
    lines: dict[str, str] = field(default_factory=dict[str, str])
    """For each of these partitions a slurm.conf with the same declaration."""

    def base(self, text: str) -> str:
        """Return slurmctld's state: a slurm.conf with the changes by REST calls since."""
        for name in self.sent:
            text = with_partitions_of(self.lines[name], text, {name})
        return text

    by_file: str = ""
    unread: frozenset[str] = frozenset()
    """Partitions whose nodes slurmctld has to look at by a reconfigure."""
    unmoved: frozenset[str] = frozenset()
    """Partitions whose nodes changed and that slurmctld could not be asked to change."""
    reread_at: float = float("-inf")
    """When it was last reconfigured for them, in monotonic seconds."""
    outdated_since: float | None = None
    """Since when slurmctld's pod is to be replaced for a newer template (monotonic seconds)."""
    kept_by: dict[str, Rejection] = field(default_factory=dict[str, Rejection])
    """Why slurmctld did not delete removed partitions."""
    deleted: set[str] = field(default_factory=set[str])
    """Removed partitions without jobs that slurmctld deleted."""
    dropped: set[str] = field(default_factory=set[str])
    """Removed partitions without jobs that only a change of the file deletes."""

    @property
    def freed(self) -> frozenset[str]:
        """Partitions that may leave the file, as no job is in them."""
        return frozenset(self.deleted | self.dropped)
