"""Time as a dependency, so that a test can turn the clock itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
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
    """The machine's clock and the running event loop's timers."""

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
        self._timer = clock.call_later(seconds, self._look)

    def alive(self) -> None:
        """Push the deadline back to its full length."""
        self._alive_at = self._clock.monotonic()

    def cancel(self) -> None:
        """Stop watching."""
        self._timer.cancel()

    def _look(self) -> None:
        left = self._alive_at + self._seconds - self._clock.monotonic()
        if left <= 0:
            self._expire()
        else:
            self._timer = self._clock.call_later(left, self._look)


@asynccontextmanager
async def deadline(clock: Clock, seconds: float) -> AsyncGenerator[Watchdog]:
    """Raise TimeoutError in the block once `seconds` pass without `Watchdog.alive()`."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as scope:
        watchdog = Watchdog(clock, seconds, lambda: scope.reschedule(loop.time()))
        try:
            yield watchdog
        finally:
            watchdog.cancel()


def micro_time(seconds: float) -> str:
    """Kubernetes' MicroTime of a wall time: RFC 3339, six decimals, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
