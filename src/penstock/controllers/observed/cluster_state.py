"""Temporary overrides of one cluster's declaration that rendering it must respect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class PartitionOverrides:
    """Partitions that slurm.conf has otherwise than declared. `partition.changes` owns it."""

    kept: frozenset[str] = frozenset()
    """Partitions that stay as they are in `slurm_conf`."""
    slurm_conf: str = ""
    freed: frozenset[str] = frozenset()
    """Partitions that may leave slurm.conf, as no job is in them."""
    sent: str = ""
    """A slurm.conf with the partitions that slurmctld was sent since its file; empty for none."""


@dataclass(slots=True)
class TopologyText:
    """The topology.conf that a cluster is to have. The controller of topologies owns it."""

    text: str | None = None
    """None before its first reconcile: then the file in force stays."""


@dataclass(slots=True)
class RejectedFiles:
    """The files that slurmctld rejected last. The controller of its configuration owns it."""

    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """All of them, as they are at /etc/slurm."""
