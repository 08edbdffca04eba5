"""A clock that a test turns."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.kube.client.clock import Timer


@dataclass(order=True)
class _Due:
    when: float
    number: int
    callback: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Forget it."""
        self.cancelled = True


class ManualClock:
    """Stands still but for `advance`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.wall = 1_700_000_000.0
        self._due: list[_Due] = []
        self._count = 0

    def monotonic(self) -> float:
        """Seconds that `advance` moves."""
        return self.now

    def time(self) -> float:
        """Seconds since the epoch; set `wall` to make it jump."""
        return self.wall

    async def sleep(self, seconds: float) -> None:
        """Wait for `advance`."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: future.done() or future.set_result(None))
        try:
            await future
        finally:
            timer.cancel()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back from `advance`."""
        self._count += 1
        due = _Due(self.now + seconds, self._count, lambda: void(callback()))
        heapq.heappush(self._due, due)
        return due

    async def advance(self, seconds: float) -> None:
        """Let that time pass; each timer runs at its time, and its callbacks run to the end."""
        end = self.now + seconds
        await settle()
        while self._due and self._due[0].when <= end:
            due = heapq.heappop(self._due)
            if due.cancelled:
                continue
            self.wall += due.when - self.now
            self.now = due.when
            due.callback()
            await settle()
        self.wall += end - self.now
        self.now = end


def void(_: object) -> None:
    """Drop a value."""


async def settle(rounds: int = 30) -> None:
    """Let everything run that needs no time and no network."""
    for _ in range(rounds):
        await asyncio.sleep(0)
