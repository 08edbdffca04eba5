"""A process that stops for a while: SIGSTOP, heavy swapping, a suspended laptop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from penstock.kube.client.clock import Clock, Timer
from penstock.simulation.event_loop import VirtualLoop

LATER_S = 0.001
"""An event loop that goes on takes what has arrived before it takes timers that are due."""


@dataclass
class _Timer:
    """A timer that may have to wait for the end of a pause."""

    timer: Timer | None = None
    cancelled: bool = False

    def cancel(self) -> None:
        """Forget the callback."""
        self.cancelled = True
        if self.timer is not None:
            self.timer.cancel()


class PausableClock:
    """The clock of one process. While it stands still no timer of it ends, but time passes.

    Each reading takes as many seconds as `hesitation` returns: the process waits for a core.
    """

    def __init__(self, inner: Clock, hesitation: Callable[[], float] = lambda: 0.0) -> None:
        self._inner = inner
        self._hesitation = hesitation
        self._until = float("-inf")

    def pause(self, seconds: float) -> None:
        """Stand still from now on, for that long."""
        self._until = self._inner.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until the process goes on; 0 when it runs."""
        return max(0.0, self._until - self._inner.monotonic())

    def monotonic(self) -> float:
        """Seconds of the inner clock."""
        self._hesitate()
        return self._inner.monotonic()

    def time(self) -> float:
        """Wall time of the inner clock."""
        self._hesitate()
        return self._inner.time()

    def _hesitate(self) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            loop.spend(self._hesitation())

    async def sleep(self, seconds: float) -> None:
        """Wait, and for the end of a pause."""
        await self._inner.sleep(seconds)
        while self.left > 0:
            await self._inner.sleep(self.left + LATER_S)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back, after the end of a pause."""
        timer = _Timer()

        def due() -> None:
            if timer.cancelled:
                return
            if self.left > 0:
                timer.timer = self._inner.call_later(self.left + LATER_S, due)
            else:
                callback()

        timer.timer = self._inner.call_later(seconds, due)
        return timer

    async def stand_still(self, dead: Callable[[], bool]) -> None:
        """Wait for the end of a pause with something on its way that nobody can call off now."""
        while self.left > 0 and not dead():
            try:
                await asyncio.sleep(self.left)
            except asyncio.CancelledError:
                if dead():
                    raise
