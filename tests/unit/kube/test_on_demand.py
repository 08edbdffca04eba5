"""Content of objects that nobody reads does not fill the memory, and is there once it is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest

from penstock.api.kubernetes.kinds import CONFIG_MAPS, SECRETS, ConfigMap
from penstock.kube import Backoff, Cache, Client, Pace, Result
from penstock.kube.cache import on_demand
from penstock.kube.cache.on_demand import LARGEST, NotLoaded, NotLoadedError
from penstock.kube.client.metrics import Metrics
from penstock.kube.runtime.controller import Controller
from penstock.simulation.manual_clock import ManualClock, settle
from unit.kube.fake_api import FakeApi, Fault

A = "/api/v1/namespaces/a/configmaps"
LARGE = "x" * (LARGEST + 1)
PACE = Pace(backoff=Backoff(1.0, 10.0, random=lambda: 1.0))


@dataclass
class World:
    """A cache that runs against a fake server."""

    api: FakeApi
    clock: ManualClock
    client: Client
    cache: Cache[ConfigMap]
    changes: list[str] = field(default_factory=list[str])

    def data(self, key: str) -> dict[str, str]:
        """The content of an object that is there."""
        found = self.cache.get(key)
        assert found is not None
        return dict(found.data or {})

    def is_kept(self, key: str) -> bool:
        """Whether the content is in memory; asking is not reading."""
        (found,) = (one for one in self.cache if one.metadata.key == key)
        return not isinstance(found.data, NotLoaded)


@asynccontextmanager
async def watching(api: FakeApi, *, raw: bool = False) -> AsyncGenerator[World]:
    clock = ManualClock()
    client = Client(api, clock=clock)
    cache = Cache(client, CONFIG_MAPS, raw=raw, on_demand=True, pace=PACE)
    world = World(api, clock, client, cache)
    cache.subscribe(
        lambda old, new: world.changes.append((new or old or ConfigMap()).metadata.name)
    )
    task = asyncio.ensure_future(cache.run())
    try:
        await settle()
        yield world
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_small_objects_are_there_at_once() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": "1"})
    async with watching(api, raw=True) as world:
        assert world.data("a/x") == {"k": "1"}
        assert (world.cache.raw("a/x") or {})["data"] == {"k": "1"}


async def test_a_large_object_is_loaded_when_it_is_read() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": LARGE})
    async with watching(api, raw=True) as world:
        assert world.cache.get("a/x") is not None
        for read in (world.data, world.cache.raw):
            with pytest.raises(NotLoadedError, match="ConfigMap a/x is being loaded"):
                read("a/x")
        await settle()
        assert world.data("a/x") == {"k": LARGE}
        assert (world.cache.raw("a/x") or {})["data"] == {"k": LARGE}
        assert world.changes == ["x", "x"]


async def test_a_large_object_that_was_read_stays_there_when_it_changes() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": LARGE})
    async with watching(api) as world:
        with pytest.raises(NotLoadedError):
            world.data("a/x")
        await settle()
        api.put(f"{A}/x", data={"k": LARGE, "more": "1"})
        await settle()
        assert world.data("a/x")["more"] == "1"


async def test_another_object_of_the_name_is_loaded_again() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": LARGE})
    async with watching(api) as world:
        with pytest.raises(NotLoadedError):
            world.data("a/x")
        await settle()
        api.remove(f"{A}/x")
        await settle()
        api.put(f"{A}/x", data={"k": LARGE + "2"})
        await settle()
        assert not world.is_kept("a/x")
        with pytest.raises(NotLoadedError):
            world.data("a/x")
        await settle()
        assert world.data("a/x")["k"] == LARGE + "2"


async def test_one_that_is_deleted_before_it_is_loaded_does_not_come_back() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": LARGE})
    async with watching(api) as world:
        with pytest.raises(NotLoadedError):
            world.data("a/x")
        api.remove(f"{A}/x")
        await settle()
        assert list(world.cache) == []


async def test_many_small_objects_that_nobody_reads_are_kept_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(on_demand, "SPARE", 10_000)
    api = FakeApi()
    for number in range(40):
        api.put(f"{A}/x{number}", data={"k": "x" * 1000})
    async with watching(api) as world:
        kept = [one.metadata.key for one in world.cache if world.is_kept(one.metadata.key)]
        assert 5 <= len(kept) < 10
        # What is read does not count, and what is gone makes room.
        for key in kept:
            assert len(world.data(key)["k"]) == 1000
        api.put(f"{A}/y", data={"k": "x" * 1000})
        await settle()
        assert world.is_kept("a/y")
        for number in range(8):
            api.put(f"{A}/z{number}", data={"k": "x" * 1000})
        await settle()
        assert not world.is_kept("a/z7")
        api.remove(f"{A}/y")
        await settle()
        api.put(f"{A}/z7", data={"k": "y" * 1000})
        await settle()
        assert world.is_kept("a/z7")


async def test_annotations_of_an_object_that_nobody_reads_are_not_kept() -> None:
    last = {"kubectl.kubernetes.io/last-applied-configuration": LARGE}
    many = {f"example.com/{number}": "1" for number in range(5000)}
    api = FakeApi()
    for name, words in (("x", last), ("y", many)):
        api.put(
            f"{A}/{name}",
            data={"k": LARGE},
            metadata={"annotations": {"example.com/a": "1", **words}},
        )
    async with watching(api) as world:
        for one in world.cache:
            assert one.metadata.annotations["example.com/a"] == "1"
            assert len(one.metadata.annotations) <= on_demand.WORDS
            assert max(map(len, one.metadata.annotations.values())) == 1
        with pytest.raises(NotLoadedError):
            world.data("a/x")
        await settle()
        found = world.cache.get("a/x")
        assert found is not None
        assert found.metadata.annotations == {"example.com/a": "1", **last}


async def test_an_object_is_loaded_once_the_server_answers_again() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": LARGE})
    async with watching(api) as world:
        api.fail(Fault(status=500, times=20))
        with pytest.raises(NotLoadedError):
            world.data("a/x")
        await settle()
        assert not world.is_kept("a/x")
        api.faults.clear()
        await world.clock.advance(60)
        assert world.data("a/x")["k"] == LARGE


async def test_a_reconcile_begins_again_once_what_it_reads_is_there() -> None:
    """Without a pause, also where it reads several."""
    api = FakeApi()
    for name in "xyz":
        api.put(f"{A}/{name}", data={"k": LARGE})
    async with watching(api) as world:
        errors: list[Exception] = []
        read: list[int] = []

        async def reconcile(_: str) -> Result:
            read.append(sum(len(world.data(f"a/{name}")["k"]) for name in "xyz"))
            return Result()

        controller = Controller(
            "reader",
            reconcile,
            clock=world.clock,
            metrics=Metrics(),
            on_error=lambda _, error: errors.append(error),
        )
        controller.watches(world.cache, lambda obj: [obj.metadata.key])
        task = asyncio.ensure_future(controller.run())
        await settle()
        assert read[:1] == [3 * len(LARGE)]
        assert errors == []
        controller.stop()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


READS: tuple[Callable[[dict[str, str]], object], ...] = (
    bool,
    len,
    list,
    sorted,
    dict,
    lambda data: data["k"],
    lambda data: "k" in data,
    lambda data: data.get("k"),
    lambda data: data or {},
    lambda data: dict[str, str]() | data,
    lambda data: data | dict[str, str](),
    lambda data: {**data},
    lambda data: data.items(),
    lambda data: data.keys(),
    lambda data: data.values(),
)


@pytest.mark.parametrize("read", READS)
def test_no_way_of_reading_takes_what_is_not_loaded_for_empty(
    read: Callable[[dict[str, str]], object],
) -> None:
    asked: list[int] = []

    def missing() -> NotLoadedError:
        asked.append(1)
        return NotLoadedError("ConfigMap a/x is being loaded")

    with pytest.raises(NotLoadedError):
        read(cast("dict[str, str]", NotLoaded(missing)))
    assert asked


def test_secrets_are_loaded_as_well() -> None:
    assert "data" in SECRETS.type.__struct_fields__
