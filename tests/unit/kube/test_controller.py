from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from penstock.api.kubernetes.kinds import CONFIG_MAPS, SECRETS, ConfigMap
from penstock.kube import (
    Backoff,
    Cache,
    Client,
    ConflictError,
    Controller,
    Lease,
    Manager,
    Metrics,
    NotLeaderError,
    Result,
    Timing,
    TooManyRequestsError,
)
from penstock.simulation.manual_clock import ManualClock, settle
from unit.kube.fake_api import FakeApi, Fault

A = "/api/v1/namespaces/a/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"


class Loop:
    """A controller with a reconcile that a test steers."""

    def __init__(self, clock: ManualClock, *, concurrency: int = 1, timeout: float = 300.0) -> None:
        self.clock = clock
        self.metrics = Metrics()
        self.began: list[str] = []
        self.ended: list[str] = []
        self.errors: list[Exception] = []
        self.failures: list[Exception] = []
        self.result = Result()
        self.gate = asyncio.Event()
        self.gate.set()
        self.controller = Controller(
            "test",
            self.reconcile,
            clock=clock,
            metrics=self.metrics,
            concurrency=concurrency,
            timeout=timeout,
            backoff=Backoff(1.0, 60.0, random=lambda: 1.0),
            on_error=lambda _, error: self.errors.append(error),
        )

    async def reconcile(self, key: str) -> Result:
        self.began.append(key)
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.ended.append(key)
        return self.result


@asynccontextmanager
async def running(loop: Loop) -> AsyncGenerator[Loop]:
    task = asyncio.ensure_future(loop.controller.run())
    try:
        await settle()
        yield loop
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_failed_key_comes_back_after_a_growing_delay() -> None:
    clock = ManualClock()
    async with running(Loop(clock)) as loop:
        loop.failures = [ZeroDivisionError(), ZeroDivisionError()]
        loop.controller.queue.add("a")
        await clock.advance(0.9)
        assert (loop.began, loop.ended) == (["a"], [])
        await clock.advance(1.1)
        await clock.advance(2)
        assert loop.ended == ["a"]
        assert len(loop.errors) == 2
        assert loop.controller.queue.failures("a") == 0


async def test_a_conflict_is_tried_again_and_no_error_for_a_user() -> None:
    clock = ManualClock()
    async with running(Loop(clock)) as loop:
        loop.failures = [ConflictError(409)]
        loop.controller.queue.add("a")
        await clock.advance(2)
        assert loop.ended == ["a"]
        assert loop.errors == []


async def test_a_busy_server_sets_the_delay() -> None:
    clock = ManualClock()
    async with running(Loop(clock)) as loop:
        loop.failures = [TooManyRequestsError(429, retry_after=30)]
        loop.controller.queue.add("a")
        await clock.advance(29)
        assert loop.ended == []
        await clock.advance(2)
        assert loop.ended == ["a"]


async def test_a_result_may_requeue() -> None:
    clock = ManualClock()
    async with running(Loop(clock)) as loop:
        loop.result = Result(requeue_after=30)
        loop.controller.queue.add("a")
        await clock.advance(91)
        assert loop.ended == ["a"] * 4


async def test_one_key_never_runs_twice_at_once_and_others_run_beside_it() -> None:
    clock = ManualClock()
    async with running(Loop(clock, concurrency=3)) as loop:
        loop.gate.clear()
        loop.controller.queue.add("a")
        await settle()
        loop.controller.queue.add("a")
        loop.controller.queue.add("b")
        await settle()
        assert loop.began == ["a", "b"]
        loop.gate.set()
        await settle()
        assert sorted(loop.ended) == ["a", "a", "b"]


async def test_a_reconcile_that_hangs_is_cancelled_and_tried_again() -> None:
    clock = ManualClock()
    async with running(Loop(clock, timeout=10)) as loop:
        loop.gate.clear()
        loop.controller.queue.add("a")
        await clock.advance(10.5)
        assert isinstance(loop.errors[0], TimeoutError)
        loop.gate.set()
        await clock.advance(2)
        assert loop.ended == ["a"]


async def test_reconciles_are_measured_by_their_result() -> None:
    clock = ManualClock()
    async with running(Loop(clock)) as loop:
        loop.failures = [ZeroDivisionError()]
        loop.controller.queue.add("a")
        await clock.advance(2)
        value = loop.metrics.registry.get_sample_value
        for result in ("ok", "error"):
            labels = {"controller": "test", "result": result}
            assert value("penstock_reconcile_seconds_count", labels) == 1


async def test_an_object_that_moves_requeues_its_old_and_its_new_owner() -> None:
    api, clock = FakeApi(), ManualClock()
    cache = Cache(Client(api, clock=clock), CONFIG_MAPS)
    loop = Loop(clock)
    loop.controller.watches(cache, _owner)
    watching = asyncio.ensure_future(cache.run())
    async with running(loop):
        api.put(f"{A}/x", data={"owner": "one"})
        await settle()
        api.put(f"{A}/x", data={"owner": "two"})
        await settle()
        assert loop.ended == ["one", "one", "two"]
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_changes_that_mean_nothing_can_be_left_out() -> None:
    api, clock = FakeApi(), ManualClock()
    cache = Cache(Client(api, clock=clock), CONFIG_MAPS)
    loop = Loop(clock)
    loop.controller.watches(cache, _owner, when=lambda old, new: old is None or new is None)
    watching = asyncio.ensure_future(cache.run())
    async with running(loop):
        api.put(f"{A}/x", data={"owner": "one"})
        await settle()
        api.put(f"{A}/x", data={"owner": "one", "more": ""})
        await settle()
        assert loop.ended == ["one"]
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


def _owner(obj: ConfigMap) -> list[str]:
    return [(obj.data or {})["owner"]]


class Process:
    """A manager with one controller over ConfigMaps, on a server that a test steers."""

    def __init__(self, api: FakeApi, clock: ManualClock, identity: str | None = None) -> None:
        self.client = Client(api, clock=clock)
        lease = None
        if identity is not None:
            lease = Lease(Client(api, clock=clock), "n", "l", identity)
        self.manager = Manager(self.client, lease=lease)
        self.loop = Loop(clock)
        cache = self.manager.cache(CONFIG_MAPS)
        self.loop.controller.watches(cache, lambda c: [c.metadata.key])
        self.manager.add(self.loop.controller)
        self.beside: list[str] = []
        self.manager.run_while_leading(self.work_beside)
        self.task = asyncio.ensure_future(self.manager.run())

    async def work_beside(self) -> None:
        self.beside.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            self.beside.append("ended")

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_a_manager_is_ready_when_its_caches_are_synced() -> None:
    api, clock = FakeApi(), ManualClock()
    api.fail(Fault(500, times=2))
    process = Process(api, clock)
    await settle()
    assert process.manager.not_ready() == "waiting for configmaps"
    await clock.advance(10)
    assert process.manager.not_ready() is None
    await process.end()


async def test_a_cache_that_nobody_needs_delays_nobody_else() -> None:
    """A right that an administrator did not give must not stop the operator."""
    api, clock = FakeApi(), ManualClock()
    process = Process(api, clock)
    waiting = Loop(clock)
    api.fail(Fault(403, times=100, when=lambda one: "/secrets" in one.path))
    waiting.controller.watches(
        process.manager.cache(SECRETS, namespaces=["denied"], needed=False), lambda c: ["x"]
    )
    process.manager.add(waiting.controller)
    api.put(f"{A}/x")
    await clock.advance(5)
    assert process.manager.not_ready() is None
    assert process.loop.began == ["a/x"]
    assert waiting.began == []
    await process.end()


async def test_the_same_cache_is_shared() -> None:
    manager = Manager(Client(FakeApi(), clock=ManualClock()))
    one = manager.cache(CONFIG_MAPS)
    assert manager.cache(CONFIG_MAPS, raw=True) is one
    assert one.keep_raw
    assert manager.cache(CONFIG_MAPS, labels="a=b") is not one


async def test_a_stop_lets_the_running_reconcile_end_and_begins_no_other() -> None:
    api, clock = FakeApi(), ManualClock()
    api.put(f"{A}/x")
    api.put(f"{A}/y")
    process = Process(api, clock, "one")
    process.loop.gate.clear()
    await clock.advance(5)
    assert process.loop.began == ["a/x"]
    process.manager.stop()
    await settle()
    assert not process.task.done()
    assert api.objects[LEASE]["spec"]["holderIdentity"] == "one"
    assert process.beside == ["began"]
    process.loop.gate.set()
    await process.task
    assert process.loop.ended == ["a/x"]
    assert process.beside == ["began", "ended"]
    assert api.objects[LEASE]["spec"]["holderIdentity"] == ""


async def test_a_stop_does_not_wait_for_ever() -> None:
    api, clock = FakeApi(), ManualClock()
    api.put(f"{A}/x")
    process = Process(api, clock)
    process.loop.gate.clear()
    await clock.advance(1)
    process.manager.stop()
    await clock.advance(19)
    assert not process.task.done()
    await clock.advance(2)
    await process.task
    assert process.loop.ended == []


async def test_a_stop_before_anything_is_synced_ends_at_once() -> None:
    api, clock = FakeApi(), ManualClock()
    api.fail(Fault(500, times=1000))
    process = Process(api, clock)
    await settle()
    process.manager.stop()
    await process.task


async def test_a_standby_takes_over_only_when_the_leader_is_gone() -> None:
    api, clock = FakeApi(), ManualClock()
    api.put(f"{A}/x")
    first, second = Process(api, clock, "one"), Process(api, clock, "two")
    await clock.advance(30)
    assert (first.loop.ended, second.loop.ended) == (["a/x"], [])
    assert second.manager.not_ready() is None
    await first.end()
    await clock.advance(5)
    assert second.loop.ended == ["a/x"]
    await second.end()


async def test_a_leader_that_cannot_renew_stops_everything_and_reports_it() -> None:
    api, clock = FakeApi(), ManualClock()
    process = Process(api, clock, "one")
    await clock.advance(5)
    api.fail(Fault(500, times=10_000, when=lambda r: "leases" in r.path))
    await clock.advance(14)
    with pytest.raises(ExceptionGroup) as caught:
        await process.task
    assert caught.group_contains(NotLeaderError)
    assert process.beside == ["began", "ended"]


async def test_a_process_that_slept_through_its_lease_writes_nothing() -> None:
    api, clock = FakeApi(), ManualClock()
    process = Process(api, clock, "one")
    await clock.advance(5)
    clock.now += Timing().renew + 1
    with pytest.raises(NotLeaderError):
        await process.client.delete(CONFIG_MAPS, "a", "x")
    await process.end()


async def test_a_cache_is_not_made_after_the_start() -> None:
    process = Process(FakeApi(), ManualClock())
    await settle()
    with pytest.raises(RuntimeError, match="after the start"):
        process.manager.cache(CONFIG_MAPS, labels="a=b")
    await process.end()
