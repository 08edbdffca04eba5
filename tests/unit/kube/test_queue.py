from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kube import Backoff, Metrics, QueueClosedError, WorkQueue
from penstock.simulation.manual_clock import ManualClock, settle


def make(clock: ManualClock | None = None) -> WorkQueue:
    backoff = Backoff(1.0, 60.0, random=lambda: 1.0)
    return WorkQueue("test", clock or ManualClock(), Metrics(), backoff=backoff)


async def test_a_key_added_twice_is_handed_out_once() -> None:
    queue = make()
    queue.add("a")
    queue.add("a")
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_a_key_added_while_it_runs_waits_until_it_is_done() -> None:
    """D52: no event is lost."""
    queue = make()
    queue.add("a")
    await queue.get()
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"


async def test_keys_come_out_in_the_order_they_went_in() -> None:
    queue = make()
    for key in "cab":
        queue.add(key)
    assert [await queue.get() for _ in range(3)] == ["c", "a", "b"]


async def test_a_busy_key_does_not_starve_the_others() -> None:
    queue = make()
    queue.add("busy")
    queue.add("other")
    assert await queue.get() == "busy"
    queue.add("busy")
    queue.done("busy")
    assert await queue.get() == "other"


async def test_of_two_delays_the_earlier_counts() -> None:
    clock = ManualClock()
    queue = make(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 3)
    queue.add_after("a", 20)
    await clock.advance(2.9)
    assert len(queue) == 0
    await clock.advance(0.2)
    assert await queue.get() == "a"
    queue.done("a")
    await clock.advance(60)
    assert queue.idle


async def test_the_back_off_doubles_up_to_its_cap_and_forgets() -> None:
    """D53: for each key, up to the cap of its own queue."""
    queue = make()
    assert [queue.retry("a") for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert queue.retry("b") == 1
    queue.forget("a")
    assert queue.retry("a") == 1


async def test_a_server_that_asks_for_patience_gets_it() -> None:
    assert make().retry("a", at_least=30) == 30


async def test_closing_ends_every_wait() -> None:
    queue = make()

    async def wait() -> None:
        with pytest.raises(QueueClosedError):
            await queue.get()

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(wait())
        await settle()
        queue.close()


async def test_draining_hands_out_what_is_ready_and_no_more() -> None:
    clock = ManualClock()
    queue = make(clock)
    queue.add("now")
    queue.add_after("later", 1)
    queue.close(drain=True)
    queue.add("late")
    assert await queue.get() == "now"
    with pytest.raises(QueueClosedError):
        await queue.get()


async def test_a_cancelled_getter_passes_its_key_on() -> None:
    queue = make()
    first = asyncio.ensure_future(queue.get())
    second = asyncio.ensure_future(queue.get())
    await settle()
    queue.add("a")
    first.cancel()
    assert await second == "a"


Step = st.tuples(st.sampled_from(["add", "after", "get", "done", "time"]), st.integers(0, 3))


@given(st.lists(Step, max_size=60))
def test_no_addition_is_lost_and_no_key_runs_twice_at_once(steps: list[tuple[str, int]]) -> None:
    """Each addition is followed by a handling that began after it."""

    async def play() -> None:
        clock = ManualClock()
        queue = make(clock)
        running: list[str] = []
        owed: set[str] = set()

        async def take() -> None:
            key = await queue.get()
            assert key not in running
            running.append(key)
            owed.discard(key)

        for step, number in steps:
            key = str(number)
            if step == "add":
                queue.add(key)
                owed.add(key)
            elif step == "after":
                queue.add_after(key, number + 1)
                owed.add(key)
            elif step == "get" and len(queue):
                await take()
            elif step == "done" and running:
                queue.done(running.pop(0))
            elif step == "time":
                await clock.advance(number)
        await clock.advance(10)
        while running or len(queue):
            while running:
                queue.done(running.pop())
            if len(queue):
                await take()
        assert not owed
        assert queue.idle

    asyncio.run(play())
