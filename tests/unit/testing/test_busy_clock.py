"""A simulated process that waits for a core: time passes while it reads its clock."""

from __future__ import annotations

import asyncio

from penstock.simulation.event_loop import LoopClock, simulate
from penstock.simulation.pause import PausableClock


def test_a_reading_of_a_busy_clock_takes_time_for_all() -> None:
    async def play() -> tuple[float, float, float]:
        inner = LoopClock()
        clock = PausableClock(inner, lambda: 2.0)
        return clock.monotonic(), clock.time() - inner.time(), inner.monotonic()

    assert simulate(play()) == (2.0, 0.0, 4.0)


def test_what_is_due_while_a_busy_process_reads_its_clock_comes_late() -> None:
    async def play() -> float:
        inner, due = LoopClock(), asyncio.Event()
        inner.call_later(1.0, due.set)
        PausableClock(inner, lambda: 5.0).monotonic()
        await due.wait()
        return inner.monotonic()

    assert simulate(play()) == 5.0
