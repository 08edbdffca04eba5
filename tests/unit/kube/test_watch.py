from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from penstock.api.kubernetes.kinds import (
    CONFIG_MAPS,
    PODS,
    SERVICE_MONITORS,
    ConfigMap,
    ServiceMonitor,
)
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.kube import Backoff, Cache, Client, Config, HttpTransport, Pace
from penstock.kube.client.credentials import FileCredentials, Material
from penstock.simulation.manual_clock import ManualClock, settle
from unit.kube.fake_api import FakeApi, Fault, served

A = "/api/v1/namespaces/a/configmaps"
B = "/api/v1/namespaces/b/configmaps"
PACE = Pace(backoff=Backoff(1.0, 10.0, random=lambda: 1.0))

Change = tuple[str | None, str | None]


class World:
    """A cache that runs against a fake server, and what its subscriber was told."""

    def __init__(self, api: FakeApi, clock: ManualClock, cache: Cache[ConfigMap]) -> None:
        self.api = api
        self.clock = clock
        self.cache = cache
        self.told: list[Change] = []
        cache.subscribe(lambda old, new: self.told.append((_value(old), _value(new))))

    def names(self) -> list[str]:
        return sorted(obj.metadata.key for obj in self.cache)


def _value(obj: ConfigMap | None) -> str | None:
    return None if obj is None else f"{obj.metadata.name}={(obj.data or {}).get('k', '')}"


@asynccontextmanager
async def watching(
    api: FakeApi, *, namespaces: tuple[str, ...] = (), labels: str = "", raw: bool = False
) -> AsyncGenerator[World]:
    clock = ManualClock()
    client = Client(api, clock=clock)
    cache = Cache(client, CONFIG_MAPS, namespaces=namespaces, labels=labels, raw=raw, pace=PACE)
    world = World(api, clock, cache)
    task = asyncio.ensure_future(cache.run())
    try:
        await settle()
        yield world
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_cold_cache_has_what_the_server_has() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": "1"})
    async with watching(api) as world:
        assert world.cache.synced
        found = world.cache.get("a/x")
        assert found is not None
        assert found.data == {"k": "1"}
        assert world.cache.version() == api.version


async def test_handlers_are_called_for_each_change() -> None:
    async with watching(FakeApi()) as world:
        world.api.put(f"{A}/x", data={"k": "1"})
        world.api.put(f"{A}/x", data={"k": "2"})
        world.api.remove(f"{A}/x")
        await settle()
        assert world.told == [(None, "x=1"), ("x=1", "x=2"), ("x=2", None)]
        assert world.names() == []


async def test_whoever_subscribes_late_gets_the_present_objects() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": "1"})
    async with watching(api) as world:
        late: list[Change] = []
        stop = world.cache.subscribe(lambda o, n: late.append((_value(o), _value(n))))
        assert late == [(None, "x=1")]
        stop()
        api.remove(f"{A}/x")
        await settle()
        assert len(late) == 1


async def test_a_handler_that_fails_does_not_stop_the_watch() -> None:
    async with watching(FakeApi()) as world:

        def fail(old: ConfigMap | None, new: ConfigMap | None) -> None:
            raise ZeroDivisionError

        world.cache.subscribe(fail)
        world.api.put(f"{A}/x")
        world.api.put(f"{A}/y")
        await settle()
        assert world.names() == ["a/x", "a/y"]


async def test_an_initial_list_that_is_cut_leaves_no_hole() -> None:
    api = FakeApi()
    for name in "vwxyz":
        api.put(f"{A}/{name}")
    api.initial_events_before_cut = 3
    async with watching(api) as world:
        assert not world.cache.synced
        assert world.names() == []
        await world.clock.advance(5)
        assert world.names() == [f"a/{n}" for n in "vwxyz"]


async def test_a_server_without_streaming_lists_is_read_in_pages() -> None:
    api = FakeApi()
    api.streaming_lists = False
    for number in range(501):
        api.put(f"{A}/{number}")
    async with watching(api) as world:
        await world.clock.advance(2)
        assert len(world.cache) == 501
        api.put(f"{A}/new")
        await settle()
        assert world.cache.get("a/new") is not None


@pytest.mark.parametrize("how", ["cut", "end"])
async def test_a_broken_watch_goes_on_where_it_was(how: str) -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": "1"})
    async with watching(api) as world:
        (api.cut_watches if how == "cut" else api.end_watches)()
        api.put(f"{A}/x", data={"k": "2"})
        api.put(f"{A}/y", data={"k": "1"})
        api.remove(f"{A}/y")
        await world.clock.advance(2)
        assert world.told == [(None, "x=1"), ("x=1", "x=2"), (None, "y=1"), ("y=1", None)]
        assert sum("sendInitialEvents" in r.params for r in api.requests) == 1


async def test_after_410_at_the_start_vanished_objects_count_as_deleted() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": "1"})
    api.put(f"{A}/y", data={"k": "1"})
    async with watching(api) as world:
        api.cut_watches()
        await settle()
        api.remove(f"{A}/x")
        api.put(f"{A}/z", data={"k": "1"})
        api.compact()
        await world.clock.advance(5)
        assert world.told[2:] == [("x=1", None), (None, "z=1")]
        assert world.names() == ["a/y", "a/z"]


async def test_410_inside_the_stream_lists_again() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": "1"})
    async with watching(api) as world:
        api.expire_watches()
        await settle()
        api.remove(f"{A}/x")
        await world.clock.advance(5)
        assert world.names() == []
        assert sum("sendInitialEvents" in r.params for r in api.requests) == 2


async def test_an_object_recreated_unseen_counts_as_deleted_and_added() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": "1"})
    async with watching(api) as world:
        api.cut_watches()
        await settle()
        api.remove(f"{A}/x")
        api.put(f"{A}/x", data={"k": "2"})
        api.compact()
        await world.clock.advance(5)
        assert world.told[1:] == [("x=1", None), (None, "x=2")]


async def test_a_black_holed_watch_is_noticed() -> None:
    api = FakeApi()
    async with watching(api) as world:
        api.stall_watches()
        api.put(f"{A}/x")
        await world.clock.advance(PACE.silence - 1)
        assert world.names() == []
        assert world.cache.silence() == pytest.approx(PACE.silence - 1)
        await world.clock.advance(5)
        assert world.names() == ["a/x"]


async def test_bookmarks_keep_an_idle_watch_alive_and_move_it_on() -> None:
    api = FakeApi()
    async with watching(api) as world:
        for _ in range(5):
            await world.clock.advance(60)
            api.put("/api/v1/namespaces/a/secrets/other")
            api.bookmark()
            await settle()
        assert len(api.requests) == 1
        assert world.cache.version() == api.version
        api.compact()
        api.cut_watches()
        await world.clock.advance(5)
        assert sum("sendInitialEvents" in r.params for r in api.requests) == 1


async def test_duplicated_events_are_handled_once() -> None:
    api = FakeApi()
    api.duplicate_events = True
    async with watching(api) as world:
        api.put(f"{A}/x", data={"k": "1"})
        api.put(f"{A}/x", data={"k": "2"})
        api.remove(f"{A}/x")
        await settle()
        assert world.told == [(None, "x=1"), ("x=1", "x=2"), ("x=2", None)]


async def test_an_old_state_that_comes_late_is_ignored() -> None:
    api = FakeApi()
    async with watching(api) as world:
        old = api.put(f"{A}/x", data={"k": "1"})
        api.put(f"{A}/x", data={"k": "2"})
        await settle()
        api.watches[0].send("MODIFIED", old)
        await settle()
        assert world.told == [(None, "x=1"), ("x=1", "x=2")]


async def test_a_server_that_keeps_failing_is_asked_ever_more_rarely() -> None:
    api = FakeApi()
    api.fail(Fault(500, times=10_000))
    async with watching(api) as world:
        await world.clock.advance(100)
        assert 10 < len(api.requests) < 20


async def test_a_version_the_server_cannot_serve_ends_in_a_new_list() -> None:
    api = FakeApi()
    async with watching(api) as world:
        api.fail(Fault(504, "Timeout", times=10_000, when=lambda r: "resourceVersion" in r.params))
        api.put(f"{A}/x")
        api.cut_watches()
        await world.clock.advance(60)
        assert world.names() == ["a/x"]
        api.put(f"{A}/y")
        await settle()
        assert "a/y" in world.names()


async def test_an_object_that_does_not_fit_its_type_keeps_its_last_state() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": "1"})
    async with watching(api) as world:
        api.put(f"{A}/x", data="not a mapping")
        api.put(f"{A}/y")
        await settle()
        assert world.told == [(None, "x=1"), (None, "y=")]
        api.compact()
        api.expire_watches()
        await world.clock.advance(5)
        assert world.names() == ["a/x", "a/y"]


async def test_several_namespaces_are_watched_each_by_itself() -> None:
    api = FakeApi()
    api.put(f"{A}/x")
    api.put(f"{B}/x")
    api.put("/api/v1/namespaces/c/configmaps/x")
    async with watching(api, namespaces=("a", "b")) as world:
        assert world.names() == ["a/x", "b/x"]
        api.remove(f"{B}/x")
        api.compact()
        api.expire_watches()
        await world.clock.advance(5)
        assert world.names() == ["a/x"]


async def test_an_object_that_leaves_the_selector_leaves_the_cache_at_the_next_list() -> None:
    api = FakeApi()
    api.put(f"{A}/x", metadata={"labels": {"app": "s"}})
    api.put(f"{A}/y", metadata={"labels": {"app": "t"}})
    async with watching(api, labels="app=s") as world:
        assert world.names() == ["a/x"]


async def test_raw_keeps_the_whole_object() -> None:
    api = FakeApi()
    api.put(f"{A}/x", other={"unknown": [1]})
    async with watching(api, raw=True) as world:
        whole = world.cache.raw("a/x")
        assert whole is not None
        assert whole["other"] == {"unknown": [1]}
        assert world.cache.raw("a/none") is None


async def test_an_index_follows_each_change() -> None:
    api = FakeApi()
    api.put(f"{A}/x", data={"k": "1"})
    async with watching(api) as world:
        index = world.cache.index(lambda c: [(c.data or {}).get("k", "")])
        api.put(f"{A}/y", data={"k": "1"})
        await settle()
        assert [c.metadata.name for c in index.get("1")] == ["x", "y"]
        api.put(f"{A}/x", data={"k": "2"})
        api.remove(f"{A}/y")
        await settle()
        assert index.get("1") == ()
        assert [c.metadata.name for c in index.get("2")] == ["x"]


async def test_a_cache_that_keeps_no_json_reports_it() -> None:
    api = FakeApi()
    api.put(f"{A}/x")
    async with watching(api) as world:
        with pytest.raises(ValueError, match="does not keep JSON"):
            world.cache.raw("a/x")


async def test_a_cache_follows_a_real_connection_through_its_break() -> None:
    api = FakeApi()
    pod = "/api/v1/namespaces/a/pods"
    api.put(f"{pod}/x", spec={"nodeName": "n" * 300_000})
    async with served(api) as url:
        transport = HttpTransport(Config(url, FileCredentials(Material())))
        cache = Cache(Client(transport), PODS, pace=Pace(backoff=Backoff(0.01, 0.1)))
        seen: asyncio.Queue[str] = asyncio.Queue()
        cache.subscribe(lambda _, new: seen.put_nowait(new.metadata.name) if new else None)
        task = asyncio.ensure_future(cache.run())
        assert await seen.get() == "x"
        api.put(f"{pod}/y")
        assert await seen.get() == "y"
        api.cut_watches()
        api.put(f"{pod}/z")
        assert await seen.get() == "z"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await transport.close()


MONITORS = "/apis/monitoring.coreos.com/v1/namespaces/a/servicemonitors"


@asynccontextmanager
async def optional(api: FakeApi, clock: ManualClock) -> AsyncGenerator[Cache[ServiceMonitor]]:
    cache = Cache(Client(api, clock=clock), SERVICE_MONITORS, pace=PACE)
    task = asyncio.ensure_future(cache.run())
    try:
        await settle()
        yield cache
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("status", [403, 404])
async def test_a_kind_that_a_cluster_may_be_without_delays_nothing(status: int) -> None:
    api, clock = FakeApi(), ManualClock()
    api.put(f"{MONITORS}/x", spec={})
    api.fail(Fault(status=status, reason="NotFound"))
    async with optional(api, clock) as cache:
        assert cache.synced
        assert cache.absent
        assert len(cache) == 0
        await clock.advance(PACE.absent)
        await settle()
        assert (cache.absent, len(cache)) == ("", 1)


CLUSTERS = "/apis/slinky.slurm.net/v1beta1/namespaces/a/controllers"


@asynccontextmanager
async def clusters(api: FakeApi, clock: ManualClock) -> AsyncGenerator[Cache[Controller]]:
    cache = Cache(Client(api, clock=clock), CONTROLLERS, pace=PACE)
    task = asyncio.ensure_future(cache.run())
    try:
        await settle()
        yield cache
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_definition_that_comes_soon_after_the_start_is_found_in_seconds() -> None:
    api, clock = FakeApi(), ManualClock()
    api.put(f"{CLUSTERS}/x", spec={})
    api.fail(Fault(404, "NotFound", times=2))
    async with clusters(api, clock) as cache:
        assert cache.synced
        await clock.advance(4)
        await settle()
        assert (cache.absent, len(cache)) == ("", 1)


async def test_a_kind_of_ours_that_may_not_be_read_is_waited_for() -> None:
    """Without the right there may be objects all the same, and decisions depend on them."""
    api, clock = FakeApi(), ManualClock()
    api.put(f"{CLUSTERS}/x", spec={})
    api.fail(Fault(403, "Forbidden", times=1))
    async with clusters(api, clock) as cache:
        assert not cache.synced
        await clock.advance(5)
        await settle()
        assert (cache.synced, len(cache)) == (True, 1)


async def test_objects_that_were_seen_are_kept_until_their_definition_is_lacking_for_long() -> None:
    """A server that does not serve a definition yet must not look like a deleted cluster."""
    api, clock = FakeApi(), ManualClock()
    api.put(f"{CLUSTERS}/x", spec={})
    async with clusters(api, clock) as cache:
        assert len(cache) == 1
        api.fail(Fault(404, "NotFound", times=10_000))
        api.cut_watches()
        await settle()
        await clock.advance(PACE.absent - 5)
        await settle()
        assert (len(cache), cache.absent) == (1, "")
        await clock.advance(PACE.absent)
        await settle()
        assert len(cache) == 0
        assert cache.absent


async def test_a_kind_that_every_cluster_has_is_waited_for() -> None:
    api = FakeApi()
    api.fail(Fault(status=404, times=2))
    async with watching(api) as world:
        assert not world.cache.synced
        await world.clock.advance(60)
        await settle()
        assert world.cache.synced


async def test_an_object_nested_deeper_than_python_decodes_leaves_the_watch_to_the_others() -> None:
    """kube-apiserver stores up to 10,000 levels."""
    api = FakeApi()
    api.put(f"{A}/before")
    async with watching(api) as world:
        meta = b'{"name":"deep","namespace":"a","uid":"u","resourceVersion":"%d"}' % (
            api.version + 1
        )
        nested = b'{"a":' * 9_000 + b"[1]" + b"}" * 9_000
        for line in api.watches:
            line.lines.put_nowait(
                b'{"type":"ADDED","object":{"metadata":%s,"data":{"k":"v"},"more":%s}}'
                % (meta, nested)
            )
        await settle()
        api.put(f"{A}/after")
        await settle()
        assert world.names() == ["a/after", "a/before", "a/deep"]
        assert len(api.watches) == 1
