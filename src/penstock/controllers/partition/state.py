"""What is remembered of the partitions of one cluster, from one reconcile to the next."""

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
class Refusal:
    """What slurmctld did not take, its words, and when it was asked (monotonic seconds)."""

    declared: PartitionLine | None
    words: str
    at: float


@dataclass(frozen=True, slots=True)
class AppliedPartitions(Generic[C]):
    """The cluster that files are to be rendered from."""

    cluster: C
    live: bool = False
    """Whether slurmctld has all that changed, so that it need not read its file for it."""


@dataclass(frozen=True, slots=True)
class Told:
    """The object that events are about, and the desired slurm.conf."""

    events: Events
    obj: KubeObject
    text: str


@dataclass(slots=True)
class State:
    """State of one cluster that outlives a reconcile of its object."""

    verifier: PartitionVerifier = field(default_factory=PartitionVerifier)
    has_compared: bool = False
    """Whether this process has compared what is declared with the file once."""
    refused: dict[str, Refusal] = field(default_factory=dict[str, Refusal])
    sent: dict[str, PartitionLine | None] = field(default_factory=dict[str, PartitionLine | None])
    """What slurmctld was told and the file does not show yet."""
    file: str = ""
    """The slurm.conf beside which the last of these calls was made."""
    lines: dict[str, str] = field(default_factory=dict[str, str])
    """Of these partitions a slurm.conf that says the same."""

    def base(self, text: str) -> str:
        """What slurmctld has: a slurm.conf, and what it was told since."""
        for name in self.sent:
            text = with_partitions_of(self.lines[name], text, {name})
        return text

    by_file: str = ""
    kept_by: dict[str, Refusal] = field(default_factory=dict[str, Refusal])
    """Why slurmctld did not delete partitions that are declared no more."""
    deleted: set[str] = field(default_factory=set[str])
    """Partitions that slurmctld deleted, being empty, and that nobody declared since."""
    dropped: set[str] = field(default_factory=set[str])
    """Empty partitions that only the file can take from slurmctld."""

    @property
    def freed(self) -> frozenset[str]:
        """Partitions that may leave the file, as no job is in them."""
        return frozenset(self.deleted | self.dropped)
