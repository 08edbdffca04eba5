"""A queue of keys to reconcile, with the semantics of client-go's workqueue.

A key waits at most once, is handled by one worker at a time, and is handled again when it was
added meanwhile. Keys come out in the order they went in.
"""

from __future__ import annotations

import asyncio
from collections import deque

from penstock.kube.client.backoff import Backoff
from penstock.kube.client.clock import Clock, Timer
from penstock.kube.client.metrics import Metrics


class QueueClosedError(Exception):
    """The queue hands out nothing any more."""


class WorkQueue:
    """Keys, once each; with delays and with a back-off per key."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        metrics: Metrics,
        *,
        backoff: Backoff | None = None,
    ) -> None:
        self._clock = clock
        self._backoff = backoff if backoff is not None else Backoff(0.2, 120.0)
        self._ready: deque[str] = deque()
        self._dirty: dict[str, float] = {}
        self._processing: set[str] = set()
        self._delayed: dict[str, tuple[float, Timer]] = {}
        self._failures: dict[str, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._waited = metrics.queue_wait.labels(name)
        metrics.queue_depth.labels(name).set_function(lambda: len(self))

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def idle(self) -> bool:
        """Whether nothing waits, runs, or is due later."""
        return not (self._dirty or self._processing or self._delayed)

    def add(self, key: str) -> None:
        """Have the key handled soon; while it is being handled, once more afterwards."""
        if self._closed or key in self._dirty:
            return
        self._dirty[key] = self._clock.monotonic()
        if key not in self._processing:
            self._ready.append(key)
            self._notify_getter()

    def add_after(self, key: str, seconds: float) -> None:
        """Add the key later; of several delays of one key the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        if self._closed:
            return
        due = self._clock.monotonic() + seconds
        waiting = self._delayed.get(key)
        if waiting is not None:
            if waiting[0] <= due:
                return
            waiting[1].cancel()
        self._delayed[key] = (due, self._clock.call_later(seconds, lambda: self._due(key)))

    def retry(self, key: str, at_least: float = 0.0) -> float:
        """Add the key after its back-off, longer with each failure; returns the seconds."""
        self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(self._backoff.delay(self._failures[key]), at_least)
        self.add_after(key, delay)
        return delay

    def failures(self, key: str) -> int:
        """How often in a row the key was put back by `retry`."""
        return self._failures.get(key, 0)

    def forget(self, key: str) -> None:
        """The key was handled well: its next back-off begins at the bottom."""
        self._failures.pop(key, None)

    async def get(self) -> str:
        """The next key; call `done` with it afterwards. Raises QueueClosedError."""
        while not self._ready:
            if self._closed:
                raise QueueClosedError
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    # This getter was notified for a key and is cancelled: notify another one.
                    self._notify_getter()
                raise
        key = self._ready.popleft()
        self._waited.observe(self._clock.monotonic() - self._dirty.pop(key))
        self._processing.add(key)
        return key

    def done(self, key: str) -> None:
        """The key was handled; if it was added meanwhile it waits again."""
        self._processing.discard(key)
        if key in self._dirty:
            self._ready.append(key)
            self._notify_getter()

    def close(self, *, drain: bool = False) -> None:
        """Take nothing more; drop what waits, or with `drain` hand out what is ready first."""
        self._closed = True
        for _, timer in self._delayed.values():
            timer.cancel()
        self._delayed.clear()
        if not drain:
            self._ready.clear()
            self._dirty.clear()
        while self._getters:
            self._notify_getter()

    def _due(self, key: str) -> None:
        del self._delayed[key]
        self.add(key)

    def _notify_getter(self) -> None:
        while self._getters:
            waiter = self._getters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
