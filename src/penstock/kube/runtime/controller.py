"""A loop that brings one kind of object from what it is to what it should be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from penstock.api.kubernetes.meta import KubeObject
from penstock.kube.cache.cache import Cache
from penstock.kube.cache.on_demand import NotLoadedError
from penstock.kube.client.backoff import Backoff
from penstock.kube.client.clock import Clock, deadline
from penstock.kube.client.errors import ApiError, ConflictError, KubeError, NotLeaderError
from penstock.kube.client.metrics import Metrics
from penstock.kube.runtime.queue import QueueClosedError, WorkQueue

T = TypeVar("T", bound=KubeObject)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


OUTCOMES = ("ok", "requeue", "error")


@dataclass(frozen=True, slots=True)
class Result:
    """A reconcile that succeeded. `requeue_after`: seconds until the key is requeued."""

    requeue_after: float | None = None


Reconcile = Callable[[str], Awaitable[Result]]


class Controller:
    """Calls `reconcile(key)` for each key that a watch brings, one at a time per key.

    An exception puts the key back with a growing delay and is logged; `on_error(key, error)`,
    when given, is called too, for an event or a condition. A reconcile that takes longer
    than `timeout` seconds is cancelled and counts as failed.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        clock: Clock,
        metrics: Metrics,
        concurrency: int = 1,
        timeout: float = 300.0,
        backoff: Backoff | None = None,
        on_error: Callable[[str, Exception], None] | None = None,
    ) -> None:
        self.name = name
        self.queue = WorkQueue(name, clock, metrics, backoff=backoff)
        self._reconcile = reconcile
        self._clock = clock
        self._running = metrics.running.labels(name)
        self._taken = {one: metrics.reconciles.labels(name, one) for one in OUTCOMES}
        self._concurrency = concurrency
        self._timeout = timeout
        self._began: dict[str, float] = {}
        self._on_error = on_error
        self._caches: list[Cache[Any]] = []

    def watches(
        self,
        cache: Cache[T],
        keys_of: Callable[[T], Iterable[str]],
        *,
        when: Callable[[T | None, T | None], bool] | None = None,
    ) -> None:
        """Add the keys of each object that changes, of its old and of its new state.

        `when(old, new)` may leave out changes that mean nothing to this controller.
        """

        def handle(old: T | None, new: T | None) -> None:
            if when is not None and not when(old, new):
                return
            for obj in (old, new):
                if obj is not None:
                    for key in keys_of(obj):
                        self.queue.add(key)

        self._caches.append(cache)
        cache.subscribe(handle)

    async def run(self) -> None:
        """Reconcile until `stop`; begins when all watched caches are synced."""
        for cache in self._caches:
            await cache.wait_synced()
        async with asyncio.TaskGroup() as group:
            for _ in range(self._concurrency):
                group.create_task(self._work())

    def stop(self) -> None:
        """Begin nothing new; `run` returns when the reconciles under way have ended."""
        self.queue.close()

    def overdue(self) -> tuple[str, float] | None:
        """The key whose reconcile exceeds its time by most seconds, and these; None without one."""
        if not self._began:
            return None
        key, began = min(self._began.items(), key=lambda one: one[1])
        seconds = self._clock.monotonic() - began - self._timeout
        return (key, seconds) if seconds > 0 else None

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueClosedError:
                return
            try:
                await self._one(key)
            finally:
                self.queue.done(key)

    async def _one(self, key: str) -> None:
        started = self._began[key] = self._clock.monotonic()
        outcome = "error"
        self._running.inc()
        try:
            async with deadline(self._clock, self._timeout):
                result = await self._reconcile(key)
            self.queue.forget(key)
            outcome = "ok"
            if result.requeue_after is not None:
                outcome = "requeue"
                self.queue.add_after(key, result.requeue_after)
        except Exception as error:
            self._failed(key, error)
        finally:
            del self._began[key]
            self._running.dec()
            self._taken[outcome].observe(self._clock.monotonic() - started)

    def _failed(self, key: str, error: Exception) -> None:
        asked = error.retry_after if isinstance(error, ApiError) else None
        delay = self.queue.retry(key, asked or 0.0)
        entry = log.bind(controller=self.name, key=key, retry_in=round(delay, 3))
        if isinstance(error, (ConflictError, NotLeaderError, NotLoadedError)):
            # Another writer was faster, another process leads now, or an object is being loaded:
            # expected, no news to a user.
            entry.info("reconcile is requeued", error=str(error))
            return
        if isinstance(error, (KubeError, TimeoutError)):
            entry.warning("reconcile failed", error=str(error) or repr(error))
        else:
            entry.error("reconcile failed", exc_info=error)
        if self._on_error is not None:
            self._on_error(key, error)
