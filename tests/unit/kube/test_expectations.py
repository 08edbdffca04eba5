from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from penstock.api.kubernetes.kinds import CONFIG_MAPS, ConfigMap
from penstock.kube import Cache, Client, Expectations
from penstock.simulation.manual_clock import ManualClock, settle
from unit.kube.fake_api import FakeApi

A = "/api/v1/namespaces/a/configmaps"
MANIFEST = {"metadata": {"namespace": "a", "name": "x"}}


class World:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.clock = ManualClock()
        self.client = Client(self.api, clock=self.clock)
        self.cache = Cache(self.client, CONFIG_MAPS)
        self.expected: Expectations[ConfigMap] = Expectations(self.cache, self.clock)

    async def create(self) -> ConfigMap:
        return await self.client.create(CONFIG_MAPS, MANIFEST)


@asynccontextmanager
async def watching() -> AsyncGenerator[World]:
    world = World()
    task = asyncio.ensure_future(world.cache.run())
    try:
        await settle()
        yield world
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_who_has_written_nothing_may_reconcile() -> None:
    assert World().expected.satisfied()


async def test_a_create_is_waited_for() -> None:
    async with watching() as world:
        world.expected.wrote(await world.create())
        assert not world.expected.satisfied()
        await settle()
        assert world.expected.satisfied()


async def test_an_update_is_waited_for() -> None:
    async with watching() as world:
        await world.create()
        await settle()
        new = await world.client.patch(CONFIG_MAPS, "a", "x", {"data": {"k": "2"}})
        world.expected.wrote(new)
        assert not world.expected.satisfied()
        await settle()
        assert world.expected.satisfied()


async def test_a_delete_is_waited_for() -> None:
    async with watching() as world:
        made = await world.create()
        await settle()
        await world.client.delete(CONFIG_MAPS, "a", "x")
        world.expected.deleted(made)
        assert not world.expected.satisfied()
        await settle()
        assert world.expected.satisfied()


async def test_an_object_that_only_begins_to_go_is_deleted_enough() -> None:
    async with watching() as world:
        made = await world.create()
        world.expected.deleted(made)
        meta = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]}
        world.api.put(f"{A}/x", metadata=meta)
        await settle()
        assert world.expected.satisfied()


async def test_an_object_that_somebody_deleted_before_we_saw_it_is_not_waited_for() -> None:
    """D32."""
    async with watching() as world:
        world.api.cut_watches()
        await settle()
        made = await world.create()
        world.expected.wrote(made)
        world.api.remove(f"{A}/x")
        world.api.compact()
        assert not world.expected.satisfied()
        await world.clock.advance(5)
        assert world.expected.satisfied()


async def test_an_object_made_again_by_another_does_not_hide_our_delete() -> None:
    async with watching() as world:
        made = await world.create()
        await settle()
        await world.client.delete(CONFIG_MAPS, "a", "x")
        world.expected.deleted(made)
        world.api.put(f"{A}/x")
        await settle()
        assert world.expected.satisfied()


async def test_a_write_whose_trace_never_comes_expires() -> None:
    """D32."""
    async with watching() as world:
        world.api.stall_watches()
        world.expected.wrote(await world.create())
        await world.clock.advance(59)
        assert not world.expected.satisfied()
        await world.clock.advance(2)
        assert world.expected.satisfied()
