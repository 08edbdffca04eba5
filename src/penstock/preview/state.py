"""A cluster as it is, and what the operator made of it in simulated time: frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.controllers.runtime.settings import Settings
from penstock.slurm.state import Job, Node

C = TypeVar("C")
Key: TypeAlias = tuple[str, str]
"""Namespace and name."""
Objects: TypeAlias = Mapping[str, Mapping[Key, Json]]
"""By resource (`group/plural`)."""


@dataclass(frozen=True, slots=True)
class Slurm:
    """What one cluster's slurmctld knows."""

    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class SlurmService:
    """Where one cluster's slurmrestd is asked, and what signs tokens for it.

    `service` is a Service with its port, as the API server's proxy names it.
    """

    namespace: str
    service: str
    key: SecretKeySelector
    user: str


@dataclass(frozen=True, slots=True)
class ClusterCopy:
    """A copy of the observed state: objects by resource, Slurm by the key of its cluster.

    `slurm` has the reason instead of the state if Slurm could not be asked.
    """

    objects: Objects
    slurm: Mapping[str, Slurm | str] = field(default_factory=dict[str, "Slurm | str"])
    settings: Settings = field(default_factory=Settings)
    absent: frozenset[str] = frozenset()
    """Resources that the cluster does not have."""


@dataclass(frozen=True, slots=True)
class SimulatedRun(Generic[C]):
    """What the operator did: objects before and after, and what it asked of Slurm."""

    before: Mapping[tuple[str, Key], Json | None]
    after: Mapping[tuple[str, Key], Json | None]
    drained: Mapping[str, frozenset[str]]
    """By cluster, names of the Slurm nodes that it drained."""
    changed: Mapping[str, frozenset[str]]
    """By cluster, names of the Slurm nodes that it gave other features, weight or GRES."""
    clusters: C
    """What the operator saw at the end."""
    failed: tuple[str, ...] = ()
    """Message for each object whose reconcile failed unexpectedly: the result is incomplete."""
