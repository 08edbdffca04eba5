"""Time as a dependency, so that a test can turn the clock itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol


class Timer(Protocol):
    """A callback that waits for its time."""

    def cancel(self) -> None:
        """Forget the callback; harmless after it ran."""
        ...


class Clock(Protocol):
    """What the engine needs to know of time."""

    def monotonic(self) -> float:
        """Seconds that never go backwards; only differences mean something."""
        ...

    def time(self) -> float:
        """Wall time in seconds since the epoch; may jump, so it is written but never compared."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once, after `seconds`."""
        ...


class SystemClock:
    """The system's clock and the running event loop's timers."""

    def monotonic(self) -> float:
        """Seconds of `time.monotonic`."""
        return time.monotonic()

    def time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back from the running event loop."""
        return asyncio.get_running_loop().call_later(seconds, callback)


class Watchdog:
    """A deadline that is pushed back by each sign of life."""

    def __init__(self, clock: Clock, seconds: float, expire: Callable[[], None]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._expire = expire
        self._alive_at = clock.monotonic()
        self._timer = clock.call_later(seconds, self._check)

    def alive(self) -> None:
        """Push the deadline back to its full length."""
        self._alive_at = self._clock.monotonic()

    def cancel(self) -> None:
        """Stop watching."""
        self._timer.cancel()

    def _check(self) -> None:
        left = self._alive_at + self._seconds - self._clock.monotonic()
        if left <= 0:
            self._expire()
        else:
            self._timer = self._clock.call_later(left, self._check)


class Deadline:
    """What `deadline` gives. A class, as each request has one: a generator costs twice as much."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._scope = asyncio.timeout(None)

    async def __aenter__(self) -> Watchdog:
        await self._scope.__aenter__()
        self._watchdog = Watchdog(self._clock, self._seconds, self._expire)
        return self._watchdog

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._watchdog.cancel()
        return await self._scope.__aexit__(kind, error, trace)

    def _expire(self) -> None:
        self._scope.reschedule(asyncio.get_running_loop().time())


def deadline(clock: Clock, seconds: float) -> Deadline:
    """Raise TimeoutError in the block once `seconds` pass without `Watchdog.alive()`."""
    return Deadline(clock, seconds)


def micro_time(seconds: float) -> str:
    """Kubernetes' MicroTime of a wall time: RFC 3339, six decimals, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
