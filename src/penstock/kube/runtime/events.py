"""Events for users, written beside the work and never in its way.

Source: Kubernetes API reference, Event v1 (events.k8s.io): `series`, and the limits of `reason`
and `action` (128 characters) and `note` (1 kB).
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Literal

import structlog

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.kube.client.client import Client
from penstock.kube.client.clock import micro_time
from penstock.kube.client.errors import ApiError, ForbiddenError, KubeError, NotFoundError
from penstock.kube.runtime.queue import QueueClosedError, WorkQueue

EVENTS = Resource("events.k8s.io", "v1", "Event", "events", KubeObject)

EventType = Literal["Normal", "Warning"]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Series:
    """One event and how often it happened; `written` is the count the API server knows."""

    manifest: Json
    count: int
    last: float
    seen_at: float
    written: int = 0


class Recorder:
    """Records events of one reporter.

    The same event again within `window` seconds counts up the first one's series; that is
    written at most every `pace` seconds. At most `limit` events are remembered or waiting; more
    are dropped and counted. `event` never blocks and never fails.
    """

    def __init__(
        self,
        client: Client,
        controller: str,
        instance: str,
        *,
        window: float = 360.0,
        pace: float = 30.0,
        limit: int = 1000,
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._controller = controller
        self._instance = instance
        self._window = window
        self._pace = pace
        self._limit = limit
        self._series: OrderedDict[str, _Series] = OrderedDict()
        self._queue = WorkQueue("events", client.clock, client.metrics)

    def event(
        self,
        resource: Resource[Any],
        regarding: KubeObject,
        *,
        reason: str,
        note: str,
        action: str = "Reconcile",
        warning: bool = False,
    ) -> None:
        """Emit an event with `reason` about `regarding`; `note` is the sentence a user reads."""
        meta = regarding.metadata
        type_: EventType = "Warning" if warning else "Normal"
        now = self._clock.monotonic()
        key = "\0".join((resource.plural, meta.uid or meta.key, type_, reason, action, note))
        known = self._series.get(key)
        if known is not None and now - known.seen_at < self._window:
            known.count += 1
            known.seen_at = now
            known.last = self._clock.time()
            self._series.move_to_end(key)
            # The first repetition is shown soon, the further ones together.
            self._queue.add_after(key, 0.0 if known.count == 2 else self._pace)
            return
        if len(self._series) >= self._limit and not self._make_room(now):
            self._client.metrics.events_dropped.inc()
            return
        wall = self._clock.time()
        manifest = self._manifest(resource, regarding, (type_, reason, action, note), wall)
        self._series[key] = _Series(manifest, 1, wall, now)
        self._queue.add(key)

    async def run(self) -> None:
        """Write events until `stop`."""
        while True:
            try:
                key = await self._queue.get()
            except QueueClosedError:
                return
            try:
                await self._write(key)
            finally:
                self._queue.done(key)

    def stop(self) -> None:
        """End `run` after what is due now was written."""
        self._queue.close(drain=True)

    async def _write(self, key: str) -> None:
        series = self._series.get(key)
        if series is None or series.written == series.count:
            return
        count = series.count
        try:
            if series.written == 0:
                await self._client.create(EVENTS, _with_series(series, count))
            else:
                await self._bump(series, count)
            series.written = count
            self._queue.forget(key)
        except NotFoundError:
            # The namespace or the first event is gone; a repetition begins a new one.
            self._series.pop(key, None)
        except ForbiddenError as error:
            # Also a namespace that is being deleted: trying again would not help.
            log.info("event refused", reason=series.manifest["reason"], error=str(error))
            self._series.pop(key, None)
        except KubeError as error:
            if isinstance(error, ApiError) and error.code < 429:
                log.warning("event refused", reason=series.manifest["reason"], error=str(error))
                self._series.pop(key, None)
            elif self._queue.failures(key) < 5:
                self._queue.retry(key)
            else:
                self._client.metrics.events_dropped.inc()
                self._series.pop(key, None)

    async def _bump(self, series: _Series, count: int) -> None:
        meta = series.manifest["metadata"]
        patch = {"series": {"count": count, "lastObservedTime": micro_time(series.last)}}
        await self._client.patch(EVENTS, meta["namespace"], meta["name"], patch)

    def _make_room(self, now: float) -> bool:
        key, oldest = next(iter(self._series.items()))
        if oldest.written == oldest.count or now - oldest.seen_at > self._window:
            del self._series[key]
            return True
        return False

    def _manifest(
        self,
        resource: Resource[Any],
        regarding: KubeObject,
        words: tuple[EventType, str, str, str],
        wall: float,
    ) -> Json:
        type_, reason, action, note = words
        meta = regarding.metadata
        reference = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        }
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "namespace": meta.namespace or "default",
                "name": f"{meta.name[:200]}.{secrets.token_hex(8)}",
            },
            "eventTime": micro_time(wall),
            "reportingController": self._controller,
            "reportingInstance": self._instance[:128],
            "regarding": {k: v for k, v in reference.items() if v},
            "reason": reason[:128],
            "action": action[:128],
            "note": _cut(note, 1000),
            "type": type_,
        }


def _with_series(series: _Series, count: int) -> Json:
    if count == 1:
        return series.manifest
    last = {"count": count, "lastObservedTime": micro_time(series.last)}
    return {**series.manifest, "series": last}


def _cut(text: str, size: int) -> str:
    """At most `size` bytes of text, as the server counts."""
    encoded = text.encode(errors="replace")
    text = encoded.decode()
    if len(encoded) <= size:
        return text
    return encoded[: size - 3].decode(errors="ignore") + "..."
