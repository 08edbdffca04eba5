"""Goes back to a recorded template when an annotation of the object asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.api.cluster.marks import ROLLBACK
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.event import Event
from penstock.catalog.reasons.updates import UpdateReason
from penstock.controllers.runtime.report import Events
from penstock.controllers.workers.caches import WorkerCaches, owner_of
from penstock.controllers.workers.source import WorkerSource
from penstock.decide.rollout.rollback import Rollback, requested, rollback
from penstock.kube import (
    BadRequestError,
    Cache,
    Client,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from penstock.kube.runtime.state import StateByUid
from penstock.model.worker_set import WorkerSet

ROLLED_BACK = ConditionType.ROLLED_BACK


@dataclass(slots=True)
class _State:
    done: tuple[str, Finding] | None = None
    """The last value of the annotation and what came of it."""


class Rollbacks:
    """Does each requested rollback once, and reports what came of it."""

    def __init__(
        self, client: Client, objects: Cache[Any], caches: WorkerCaches, events: Events
    ) -> None:
        self._client = client
        self._caches = caches
        self._events = events
        self._states = StateByUid(objects, _State)

    async def run(self, source: WorkerSource) -> bool:
        """Whether one was requested, so that the object has another version now.

        Raises KubeError.
        """
        workers = source.workers
        value = requested(workers)
        if value is None:
            return False
        every = self._caches.revisions_of.get(owner_of(workers))
        records = [source.recorded(one) for one in every]
        back = rollback(workers, value, source.revision(), records)
        if not back.why:
            try:
                await self._write(source, back)
            except (ConflictError, NotFoundError):
                return True
            except (BadRequestError, InvalidError, ForbiddenError) as error:
                back = Rollback(
                    value, back.number, back.name, why=f"the API server rejected it: {error}"
                )
        if back.why:
            try:
                await self._write(source, Rollback(value))
            except (ConflictError, NotFoundError):
                return True
        self._report(source, back)
        return True

    def findings(self, workers: WorkerSet) -> list[Finding]:
        """What came of it, for the status; the condition of a former process stays."""
        done = self._states.of(workers).done
        if done is None or done[0] != workers.metadata.annotations.get(ROLLBACK, "").strip():
            return []
        return [done[1]]

    async def _write(self, source: WorkerSource, back: Rollback) -> None:
        meta = source.workers.metadata
        raw = await self._client.get_raw(source.resource, meta.namespace, meta.name)
        live: Json = msgspec.json.decode(raw)
        steps = source.rollback_patch(live["spec"], back.value, back.spec)
        await self._client.patch(source.resource, meta.namespace, meta.name, steps, kind="json")

    def _report(self, source: WorkerSource, back: Rollback) -> None:
        if back.why:
            note = f"Cannot roll back to {back.value} (annotation {ROLLBACK}): {back.why}"
            self._events.warning(source.object, Event.ROLLBACK_IMPOSSIBLE, note, "Rollback")
            finding = Finding(
                True, UpdateReason.ROLLBACK_IMPOSSIBLE, note, type=ROLLED_BACK, inverted=True
            )
        else:
            which = f"revision {back.number} ({back.name})"
            note = f"Rolled back to the template of {which}: annotation {ROLLBACK} is {back.value}"
            self._events.normal(source.object, Event.ROLLED_BACK, note, "Rollback")
            finding = Finding(True, UpdateReason.ROLLBACK_DONE, note, type=ROLLED_BACK)
        self._states.of(source.workers).done = back.value, finding
