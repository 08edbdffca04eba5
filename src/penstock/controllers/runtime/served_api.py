"""What the reconcilers of one API group are built from, and what a process starts of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.controllers.caches.store import CacheStore
from penstock.controllers.runtime.connectivity import Connect
from penstock.controllers.runtime.settings import Settings
from penstock.kube import Client, Recorder
from penstock.kube.runtime.declaration import Declaration, Signals
from penstock.kube.runtime.leader import Run
from penstock.kube.webhook.review import Handler
from penstock.slurm.rest.http import Exchange


@dataclass(frozen=True, slots=True)
class ApiParts:
    """Parts of the process for the reconcilers of one API group.

    The Lease of the group guards writes of `client`, and `recorder` emits with it. The store is
    that of all groups, `signals` are the group's own: keys of two groups may be equal.
    """

    client: Client
    recorder: Recorder
    settings: Settings
    store: CacheStore
    signals: Signals
    connect: Connect
    exchange: Exchange | None = None
    """How slurmrestd is spoken to; None for HTTP."""
    url_of: Callable[[Any], str] | None = None
    """Where the slurmrestd listens that an object declares; None for its Service."""

    def may_write(self) -> bool:
        """Whether the process leads for this group at this very moment."""
        # Evaluated at each call: the guard is set when the Leader is made.
        return self.client.guard is None or self.client.guard()


@dataclass(frozen=True)
class ApiControllers:
    """All that a process runs for one API group."""

    reconcilers: Sequence[Declaration]
    beside: Sequence[Run] = ()
    """Functions that run while the process leads for the group."""
    handlers: Mapping[str, Handler] = field(default_factory=dict[str, Handler])
    """Webhooks by path, beside those that follow from the rules of its kinds."""


@dataclass(frozen=True, slots=True)
class ServedApi:
    """One API group that the operator can lead."""

    group: str
    lease: str
    """Name of the Lease of the group, in the operator's namespace."""
    pods: tuple[str, ...]
    """Label app.kubernetes.io/name of the pods of its clusters."""
    pvcs: tuple[str, ...]
    """The same of the PVCs of their workers."""
    build: Callable[[ApiParts], ApiControllers]
    """Called once, before the caches start."""
