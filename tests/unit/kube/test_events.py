from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from penstock.api.kubernetes.kinds import CONFIG_MAPS, ConfigMap
from penstock.api.kubernetes.meta import Json, ObjectMeta
from penstock.kube import Client, Recorder
from penstock.simulation.manual_clock import ManualClock, settle
from unit.kube.fake_api import FakeApi, Fault

OBJ = ConfigMap(metadata=ObjectMeta(name="x", namespace="a", uid="u", resource_version="5"))


class World:
    def __init__(self, limit: int = 1000) -> None:
        self.api = FakeApi()
        self.clock = ManualClock()
        self.client = Client(self.api, clock=self.clock)
        self.recorder = Recorder(self.client, "penstock.dev/operator", "pod-1", limit=limit)

    def say(self, note: str = "cannot", *, warning: bool = True) -> None:
        self.recorder.event(CONFIG_MAPS, OBJ, reason="SyncFailed", note=note, warning=warning)

    def written(self) -> list[Json]:
        return list(self.api.objects.values())


@asynccontextmanager
async def recording(limit: int = 1000) -> AsyncGenerator[World]:
    world = World(limit)
    task = asyncio.ensure_future(world.recorder.run())
    try:
        yield world
    finally:
        world.recorder.stop()
        await task


async def test_an_event_has_object_reason_and_note() -> None:
    async with recording() as world:
        world.say()
        await settle()
        (event,) = world.written()
        assert event["regarding"] == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": "a",
            "name": "x",
            "uid": "u",
            "resourceVersion": "5",
        }
        assert (event["reason"], event["note"]) == ("SyncFailed", "cannot")
        assert (event["type"], event["action"]) == ("Warning", "Reconcile")
        assert event["eventTime"] == "2023-11-14T22:13:20.000000Z"
        assert "series" not in event


async def test_repetitions_become_a_series_that_is_written_rarely() -> None:
    """Feature row 66."""
    async with recording() as world:
        for _ in range(100):
            world.say()
            await world.clock.advance(1)
        await world.clock.advance(31)
        (event,) = world.written()
        assert event["series"]["count"] == 100
        assert len(world.api.requests) <= 6


async def test_the_same_after_the_window_is_a_new_event() -> None:
    async with recording() as world:
        world.say()
        await world.clock.advance(400)
        world.say()
        await settle()
        assert len(world.written()) == 2


async def test_another_note_is_another_event() -> None:
    async with recording() as world:
        world.say("one")
        world.say("two")
        await settle()
        assert len(world.written()) == 2


async def test_a_failing_server_delays_events_and_harms_nobody() -> None:
    async with recording() as world:
        world.api.fail(Fault(500, times=6))
        world.say()
        await world.clock.advance(60)
        assert len(world.written()) == 1


async def test_events_of_a_namespace_that_goes_are_dropped() -> None:
    async with recording() as world:
        world.api.fail(Fault(403, "Forbidden"))
        world.say()
        await world.clock.advance(600)
        assert world.written() == []
        assert len(world.api.requests) == 1


async def test_too_many_waiting_events_are_dropped_and_counted() -> None:
    world = World(limit=3)
    for number in range(5):
        world.say(str(number))
    value = world.client.metrics.registry.get_sample_value("penstock_events_dropped_total")
    assert value == 2
    task = asyncio.ensure_future(world.recorder.run())
    await settle()
    world.say("later")
    await settle()
    assert len(world.written()) == 4
    world.recorder.stop()
    await task


async def test_what_is_due_at_the_end_is_still_written() -> None:
    world = World()
    world.say()
    world.recorder.stop()
    await world.recorder.run()
    assert len(world.written()) == 1


async def test_long_words_are_cut_to_what_the_server_takes() -> None:
    async with recording() as world:
        world.say("ü" * 2000)
        await settle()
        (event,) = world.written()
        assert len(event["note"].encode()) <= 1000
        assert event["note"].endswith("...")
