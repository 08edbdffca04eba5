"""An event loop whose time is simulated: hours pass in the time that the work itself takes.

All waiting of asyncio (sleep, timeout, timers) counts in the loop's own time, which stands still
while anything can run and jumps to the next timer when nothing can. There is no input or output,
so two runs of the same program are the same to the last step.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from penstock.kube.client.clock import Timer

T = TypeVar("T")
EPOCH = 1_800_000_000.0


class StuckError(RuntimeError):
    """The simulation would never end: no timer is left, or more were set than its limit allows."""


class _Jump(selectors.SelectSelector):
    """Never waits: the time that the loop would wait for passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.timers = 0
        self.limit: int | None = None

    def select(self, timeout: float | None = None) -> list[Any]:
        if self.limit is not None and self.timers > self.limit:
            timers, self.limit = self.timers, None
            raise StuckError(f"{timers} timers were set within {self.now:.0f} simulated seconds")
        if timeout is None:
            raise StuckError("nothing will ever happen again")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in simulated time, beginning at 0 seconds.

    With `timers`, StuckError is raised once more than so many were set.
    """

    def __init__(self, *, timers: int | None = None) -> None:
        self._jump = _Jump()
        self._jump.limit = timers
        super().__init__(self._jump)
        # The selector decides how long a wait was, so a timer is never a hair too early.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Simulated monotonic seconds."""
        return self._jump.now

    def spend(self, seconds: float) -> None:
        """Let time pass within a step, as where all cores are busy."""
        self._jump.now += seconds

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Set a timer."""
        self._jump.timers += 1
        return super().call_at(when, callback, *args, context=context)

    def run_in_executor(
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run at once, in this thread: a thread's end would be a surprise."""
        done: asyncio.Future[T] = self.create_future()
        done.set_result(func(*args))
        return done


class LoopClock:
    """The clock of the running loop; its wall time starts at `EPOCH` and can be made to jump."""

    def __init__(self) -> None:
        self._offset = EPOCH

    def monotonic(self) -> float:
        """Seconds of the loop."""
        return asyncio.get_running_loop().time()

    def time(self) -> float:
        """Seconds since the epoch."""
        return self._offset + self.monotonic()

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward, or back when negative."""
        self._offset += seconds

    def set_right(self) -> None:
        """Take all jumps back."""
        self._offset = EPOCH

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back from the running loop."""
        return asyncio.get_running_loop().call_later(seconds, callback)


def simulate(main: Coroutine[Any, Any, T], *, timers: int | None = None) -> T:
    """Run to its end in a simulated loop of its own, which may set so many timers.

    Raises StuckError.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(timers=timers)) as runner:
        return runner.run(main)
