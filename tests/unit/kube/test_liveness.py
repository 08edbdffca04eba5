"""What counts as a process that has to be restarted, and what does not."""

from __future__ import annotations

import asyncio

import pytest

from penstock.api.kubernetes.kinds import CONFIG_MAPS
from penstock.kube import Client, Controller, Lease, Manager, Result
from penstock.kube.runtime.leader import STUCK_S
from penstock.kube.runtime.manager import DEAD_WATCH_S
from penstock.simulation.manual_clock import ManualClock, settle
from unit.kube.fake_api import FakeApi, Fault


def away(api: FakeApi) -> None:
    """Let no request reach the API server from now on, and cut what is open."""
    api.fail(Fault(cut=True, times=1_000_000))
    api.cut_watches()


class Process:
    """A manager with one cache and one controller under a Lease."""

    def __init__(self, lease: bool = True) -> None:
        self.api, self.clock = FakeApi(), ManualClock()
        self.client = Client(self.api, clock=self.clock)
        own = Client(self.api, clock=self.clock)
        self.lease = Lease(own, "n", "l", "me") if lease else None
        self.manager = Manager(self.client, lease=self.lease)
        self.cache = self.manager.cache(CONFIG_MAPS)
        self.stubborn = asyncio.Event()
        self.controller = Controller(
            "test", self.reconcile, clock=self.clock, metrics=self.client.metrics, timeout=10.0
        )
        self.manager.add(self.controller)
        self.task = asyncio.ensure_future(self.manager.run())

    async def reconcile(self, key: str) -> Result:
        if key == "stubborn":
            while not self.stubborn.is_set():
                try:
                    await self.stubborn.wait()
                except asyncio.CancelledError:
                    continue
        return Result()

    async def end(self) -> None:
        self.stubborn.set()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_a_process_that_works_is_alive_at_every_moment():
    process = Process()
    for _ in range(60):
        await process.clock.advance(30)
        assert process.manager.not_alive() is None
    await process.end()


async def test_a_reconcile_that_cannot_be_ended_is_noticed():
    process = Process()
    await process.clock.advance(10)
    process.controller.queue.add("stubborn")
    await settle()
    await process.clock.advance(10 + STUCK_S / 2)
    assert process.manager.not_alive() is None
    await process.clock.advance(STUCK_S)
    assert process.manager.not_alive() == "reconcile of test stubborn does not end"
    await process.end()


async def test_a_watch_that_does_nothing_any_more_is_noticed(monkeypatch: pytest.MonkeyPatch):
    process = Process()
    await process.clock.advance(10)
    monkeypatch.setattr(process.cache, "idle", lambda: DEAD_WATCH_S + 1)
    assert process.manager.not_alive() == "watch of configmaps is dead"
    await process.end()


async def test_a_cache_without_a_sign_of_life_is_idle():
    client = Client(FakeApi(), clock=(clock := ManualClock()))
    cache = Manager(client).cache(CONFIG_MAPS)
    task = asyncio.ensure_future(cache.run())
    await clock.advance(1000)
    assert cache.idle() < 100
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await clock.advance(1000)
    assert cache.idle() >= 1000


async def test_a_leader_that_does_not_try_to_renew_is_noticed(monkeypatch: pytest.MonkeyPatch):
    process = Process()
    await process.clock.advance(30)
    assert process.lease is not None

    async def hang() -> bool:
        await asyncio.Event().wait()
        return False

    monkeypatch.setattr(process.lease, "_attempt", hang)
    await process.clock.advance(STUCK_S / 2)
    assert process.manager.not_alive() is None
    await process.clock.advance(STUCK_S)
    assert process.manager.not_alive() == "Lease l is not renewed"
    await process.end()


async def test_an_api_server_that_is_away_is_no_reason_for_a_restart():
    """Without a Lease, as a leader ends by itself when it cannot renew."""
    process = Process(lease=False)
    await process.clock.advance(10)
    away(process.api)
    for _ in range(90):
        await process.clock.advance(30)
        assert process.manager.not_alive() is None
    await process.end()


async def test_a_standby_waits_for_the_lease_of_a_server_that_is_away():
    process = Process()
    away(process.api)
    for _ in range(20):
        await process.clock.advance(30)
        assert process.manager.not_alive() is None
    await process.end()
