"""Control loop of one kind: observes an object, reconciles it and writes its status."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from penstock.api.kubernetes.conditions import Finding, conditions, set_conditions
from penstock.api.kubernetes.meta import Condition, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.spec_parts import Status
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.caches.kubernetes import KubernetesCaches
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.runtime.connectivity import PortProbe
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.controllers.runtime.report import Events, build_conditions, internal_error, invalid
from penstock.controllers.runtime.settings import Settings
from penstock.controllers.runtime.status import status_of, write_status
from penstock.kube import (
    BadRequestError,
    Cache,
    Client,
    ForbiddenError,
    InvalidError,
    KubeError,
    NotOursError,
    Recorder,
    Result,
)
from penstock.kube.runtime.declaration import Signal, Signals, Watch
from penstock.kube.runtime.state import StateByUid
from penstock.slurm.rest.errors import SlurmError

S = TypeVar("S")
T = TypeVar("T", bound=KubeObject)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

REFUSED = (BadRequestError, InvalidError, ForbiddenError, NotOursError)
"""Rejections of the API server for a reason that only a user can remove."""


@dataclass(frozen=True, slots=True)
class Context:
    """What every loop works with."""

    client: Client
    settings: Settings
    caches: KubernetesCaches
    secrets: SecretReader
    objects: ObjectStore
    port_probe: PortProbe
    recorder: Recorder
    signals: Signals

    def states(self, resource: Resource[Any], new: Callable[[], S]) -> StateByUid[S]:
        """State for each object of a resource."""
        return StateByUid(self.caches.store.of(resource), new)


class StatusWriter(ABC, Generic[T]):
    """What a reconciler declares, and how it writes the status of an object."""

    name: str
    """Of its work queue, in logs and metrics."""
    resource: Resource[Any]
    watches: tuple[Watch[Any], ...]
    signals: tuple[Signal, ...] = ()

    def __init__(self, context: Context) -> None:
        self.client = context.client
        self.objects = context.objects
        self.events = Events(context.recorder, self.resource)
        self._cache: Cache[T] = context.caches.store.of(self.resource)

    async def write(self, obj: T, findings: list[Finding], new: Status) -> None:
        """Write status and conditions if they changed; an event when it got worse."""
        outdated = self.outdated(obj)
        old = tuple(one for one in status_of(obj).conditions if one.type not in outdated)
        found = build_conditions(obj, old, findings, self.client.clock.time())
        self.events.emit_if_changed(obj, old, found)
        generation = obj.metadata.generation
        stored = self.stored(obj, found)
        new = msgspec.structs.replace(new, observed_generation=generation, conditions=stored)
        await write_status(self.client, self.resource, obj, new)

    async def run(self, key: str) -> Result:
        """`reconcile`, with an unexpected failure reported on the object before it is raised.

        Without that the failure of one object would be in the operator's log only. What the API
        server or Slurm answers is no failure of ours: it is tried again, or has its own condition.
        """
        try:
            return await self.reconcile(key)
        except (KubeError, SlurmError, TimeoutError):
            raise
        except Exception as error:
            obj = self._cache.get(key)
            if obj is not None:
                try:
                    await self._report_failure(obj, error)
                except KubeError as refused:
                    log.warning("failure not reported", key=key, error=str(refused))
            raise

    @abstractmethod
    async def reconcile(self, key: str) -> Result:
        """Bring the object with this key closer to its spec. Raises KubeError."""

    async def _report_failure(self, obj: T, error: Exception) -> None:
        """Only conditions: of the rest of the status nothing is known.

        `observedGeneration` stays, for the same reason.
        """
        old = status_of(obj).conditions
        finding = internal_error(type(obj).__name__, obj.metadata.name, error)
        findings = [*_found_invalid(obj), finding]
        when = datetime.fromtimestamp(self.client.clock.time(), UTC)
        new = set_conditions(old, conditions(findings), obj.metadata.generation, when)
        self.events.emit_if_changed(obj, old, new)
        status = msgspec.structs.replace(status_of(obj), conditions=self.stored(obj, new))
        await write_status(self.client, self.resource, obj, status, first=not old)

    def stored(self, obj: T, found: tuple[Condition, ...]) -> tuple[Condition, ...]:
        """Return the conditions in the form that the kind has them."""
        del obj
        return found

    def outdated(self, obj: T) -> frozenset[str]:
        """Return types of conditions that do not apply to the object any more."""
        del obj
        return frozenset()


def _found_invalid(obj: KubeObject) -> list[Finding]:
    try:
        return invalid(obj)
    except Exception:
        # This may be the very failure that is being reported.
        return []


class Reconciler(StatusWriter[T]):
    """Common steps of a reconcile. A kind implements its own objects and status."""

    async def reconcile(self, key: str) -> Result:
        """Reconcile one object.

        An invalid object is not reconciled: nothing is changed or deleted for it. Raises KubeError;
        a rejection by the API server is reported in the conditions before.
        """
        obj = self._cache.get(key)
        if obj is None or obj.metadata.deleting:
            return Result()
        findings = invalid(obj)
        rejection: Exception | None = None
        if not findings:
            try:
                findings = await self.reconcile_object(obj)
            except REFUSED as error:
                rejection = error
                findings = [
                    Finding(
                        False,
                        ObjectReason.REFUSED,
                        f"The API server rejects an object of this one: {error}",
                    )
                ]
        await self.write(obj, findings, self.status(obj))
        if rejection is not None:
            raise rejection
        return Result(requeue_after=self.requeue_after(obj))

    def requeue_after(self, obj: T) -> float | None:
        """Return the seconds until the next reconcile without an event; None for none."""
        del obj
        return None

    @abstractmethod
    async def reconcile_object(self, obj: T) -> list[Finding]:
        """Apply the objects of a kind, and return the findings for its conditions."""

    def status(self, obj: T) -> Status:
        """Return the status to write, except conditions and generation."""
        return status_of(obj)


def soonest(*waits: float | None) -> float | None:
    """The least of several `requeue_after`; None when none of them is given."""
    return min((one for one in waits if one is not None), default=None)
