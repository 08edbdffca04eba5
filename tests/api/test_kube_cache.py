"""Watch caches, deletes, the Lease and events against a real API server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from api.kube_support import Gate, Node, client_of, eventually, namespace_of, running, until
from penstock.api.kubernetes.kinds import CONFIG_MAPS, SECRETS, ConfigMap
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.controllers.caches.store import CacheStore
from penstock.kube import (
    AlreadyExistsError,
    Backoff,
    Cache,
    Client,
    ConflictError,
    Expectations,
    ForbiddenError,
    HttpTransport,
    Lease,
    Manager,
    NotFoundError,
    NotLeaderError,
    Pace,
    Recorder,
    ServerError,
    Timing,
    UnreachableError,
    from_kubeconfig,
)
from penstock.kube.runtime.events import EVENTS
from penstock.local.node import Node as LocalNode

pytestmark = pytest.mark.api

T = TypeVar("T", bound=KubeObject)


def config_map(namespace: str, name: str, **data: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name},
        "data": data,
    }


async def test_a_cold_cache_of_hundreds_of_objects_is_complete(api_node: Node) -> None:
    async with namespace_of(api_node) as (client, namespace):
        names = [f"c{number}" for number in range(700)]
        await asyncio.gather(
            *(client.create(CONFIG_MAPS, config_map(namespace, n, k=n)) for n in names)
        )
        async with running(Cache(client, CONFIG_MAPS, namespaces=[namespace])) as cache:
            assert {obj.metadata.name for obj in cache} == set(names)
        listed = await client.list(CONFIG_MAPS)
        assert {o.metadata.name for o in listed.items} >= set(names)


async def test_selectors_and_namespaces_narrow_a_cache(api_node: Node) -> None:
    async with namespace_of(api_node) as (client, one), namespace_of(api_node) as (_, two):
        for namespace in (one, two):
            marked = config_map(namespace, "marked")
            marked["metadata"]["labels"] = {"app": "s"}
            await client.create(CONFIG_MAPS, marked)
            await client.create(CONFIG_MAPS, config_map(namespace, "plain"))
        cache = Cache(client, CONFIG_MAPS, namespaces=[one, two], labels="app=s", raw=True)
        async with running(cache):
            assert {o.metadata.key for o in cache} == {f"{one}/marked", f"{two}/marked"}
            await client.patch(CONFIG_MAPS, one, "marked", {"metadata": {"labels": {"app": None}}})
            await until(cache, lambda: cache.get(f"{one}/marked") is None)
        named = Cache(client, CONFIG_MAPS, namespaces=[two], fields="metadata.name=plain")
        async with running(named):
            assert [o.metadata.name for o in named] == ["plain"]


async def test_releases_of_helm_are_never_read_and_other_secrets_are(api_node: Node) -> None:
    async with namespace_of(api_node) as (client, namespace):
        for name, kind in (("key", "Opaque"), ("sh.helm.release.v1.x.v1", "helm.sh/release.v1")):
            meta = {"namespace": namespace, "name": name}
            await client.create(SECRETS, {"kind": "Secret", "metadata": meta, "type": kind})
        cache = CacheStore(Manager(client, namespaces=[namespace])).of(SECRETS)
        async with running(cache):
            assert [one.metadata.name for one in cache] == ["key"]
            meta = {"namespace": namespace, "name": "later"}
            await client.create(SECRETS, {"kind": "Secret", "metadata": meta})
            await until(cache, lambda: cache.get(f"{namespace}/later") is not None)


async def test_own_writes_are_expected_until_the_cache_shows_them(api_node: Node) -> None:
    async with (
        namespace_of(api_node) as (client, namespace),
        running(Cache(client, CONFIG_MAPS, namespaces=[namespace])) as cache,
    ):
        expected = Expectations(cache, client.clock)
        for number in range(20):
            made = await client.create(CONFIG_MAPS, config_map(namespace, f"c{number}"))
            expected.wrote(made)
            if not expected.satisfied():
                await until(cache, lambda: expected.satisfied())
            assert len(cache) == number + 1
            assert cache.get(made.metadata.key) is not None


async def test_a_cache_survives_the_loss_of_the_api_server(api_node: Node) -> None:
    """Connections cut, nothing answering for a while, changes meanwhile, then back."""
    config = from_kubeconfig([api_node.kubeconfig_path])
    async with namespace_of(api_node) as (direct, namespace), Gate.to(config.server) as gate:
        await direct.create(CONFIG_MAPS, config_map(namespace, "stays", k="1"))
        await direct.create(CONFIG_MAPS, config_map(namespace, "goes"))
        transport = HttpTransport(replace(config, server=gate.url, tls_server_name=gate.host))
        client = Client(transport)
        pace = Pace(backoff=Backoff(0.05, 0.2))
        cache = Cache(client, CONFIG_MAPS, namespaces=[namespace], pace=pace)
        told: list[tuple[str, str]] = []

        def tell(old: ConfigMap | None, new: ConfigMap | None) -> None:
            obj = new or old
            assert obj is not None
            told.append((obj.metadata.name, "gone" if new is None else "here"))

        cache.subscribe(tell)
        try:
            async with running(cache):
                await gate.shut()
                await direct.delete(CONFIG_MAPS, namespace, "goes")
                await direct.create(CONFIG_MAPS, config_map(namespace, "comes"))
                patch: Json = {"data": {"k": "2"}}
                await direct.patch(CONFIG_MAPS, namespace, "stays", patch)
                assert cache.get(f"{namespace}/goes") is not None
                await gate.open()
                await until(cache, lambda: cache.get(f"{namespace}/comes") is not None)
                await until(cache, lambda: cache.get(f"{namespace}/goes") is None)
                assert ("goes", "gone") in told
                read = asyncio.ensure_future(client.get(CONFIG_MAPS, namespace, "stays"))
                assert (await read).data == {"k": "2"}
        finally:
            await transport.close()


async def test_a_killed_and_restarted_api_server_is_survived(api_node: LocalNode) -> None:
    async with namespace_of(api_node) as (client, namespace):
        await client.create(CONFIG_MAPS, config_map(namespace, "goes"))
        pace = Pace(backoff=Backoff(0.2, 1.0))
        async with running(Cache(client, CONFIG_MAPS, namespaces=[namespace], pace=pace)) as cache:
            server = api_node.processes()["kube-apiserver"]
            assert server.signal(signal.SIGKILL)
            assert server.wait(10)
            async with asyncio.timeout(90):
                await _done(lambda: client.create(CONFIG_MAPS, config_map(namespace, "comes")))
                await _done(lambda: client.delete(CONFIG_MAPS, namespace, "goes"))
            await until(cache, lambda: cache.get(f"{namespace}/comes") is not None)
            await until(cache, lambda: cache.get(f"{namespace}/goes") is None)
            assert api_node.processes()["kube-apiserver"] != server


async def _done(call: Callable[[], Awaitable[object]]) -> None:
    """Call until it is done, as a controller does: what was cut may have been done already."""
    while True:
        try:
            await call()
        except (AlreadyExistsError, NotFoundError):
            return
        except (UnreachableError, ServerError, ForbiddenError):
            # Forbidden: a server that has just started does not know all its roles yet.
            await asyncio.sleep(0.2)
        else:
            return


async def test_a_delete_rejects_another_or_a_changed_object(api_node: Node) -> None:
    async with namespace_of(api_node) as (client, namespace):
        made = (await client.create(CONFIG_MAPS, config_map(namespace, "x"))).metadata
        with pytest.raises(ConflictError):
            await client.delete(CONFIG_MAPS, namespace, "x", uid="0-0")
        await client.patch(CONFIG_MAPS, namespace, "x", {"data": {"k": "2"}})
        with pytest.raises(ConflictError):
            await client.delete(
                CONFIG_MAPS,
                namespace,
                "x",
                uid=made.uid,
                resource_version=made.resource_version,
            )
        await client.delete(CONFIG_MAPS, namespace, "x", uid=made.uid)


async def test_the_lease_goes_from_one_candidate_to_the_next(api_node: Node) -> None:
    timing = Timing(duration=3, renew=2.0, retry=0.2)
    async with (
        namespace_of(api_node) as (one, namespace),
        client_of(api_node) as two,
    ):
        first = Lease(one, namespace, "penstock", "first", timing=timing)
        second = Lease(two, namespace, "penstock", "second", timing=timing)
        acting: list[str] = []
        done = asyncio.Event()

        async def act(lease: Lease, until: asyncio.Event) -> None:
            assert not acting
            acting.append(lease.identity)
            await until.wait()
            acting.remove(lease.identity)

        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            ended = asyncio.Event()
            group.create_task(first.lead(lambda: act(first, done)))
            await eventually(first.is_leading)
            group.create_task(second.lead(lambda: act(second, ended)))
            await eventually(lambda: bool(second.holder))
            assert acting == ["first"]
            assert not second.is_leading()
            done.set()
            await eventually(second.is_leading)
            ended.set()


async def test_a_leader_that_cannot_renew_stops_before_the_next_begins(api_node: Node) -> None:
    timing = Timing(duration=3, renew=1.5, retry=0.2)
    config = from_kubeconfig([api_node.kubeconfig_path])
    async with namespace_of(api_node) as (direct, namespace), Gate.to(config.server) as gate:
        transport = HttpTransport(replace(config, server=gate.url, tls_server_name=gate.host))
        first = Lease(Client(transport), namespace, "penstock", "first", timing=timing)
        second = Lease(direct, namespace, "penstock", "second", timing=timing)
        acting: list[str] = []

        async def act() -> None:
            acting.append("first")
            try:
                await asyncio.Event().wait()
            finally:
                acting.remove("first")

        task = asyncio.ensure_future(first.lead(act))
        try:
            async with asyncio.timeout(30):
                await eventually(lambda: bool(acting))
                await gate.shut()
                await second.acquire()
            assert not acting
            with pytest.raises(ExceptionGroup) as caught:
                await task
            assert caught.group_contains(NotLeaderError)
        finally:
            task.cancel()
            await transport.close()


async def test_repeated_events_become_one_with_a_count(api_node: Node) -> None:
    async with (
        namespace_of(api_node) as (client, namespace),
        running(Cache(client, EVENTS, namespaces=[namespace], raw=True)) as cache,
    ):
        made = await client.create(CONFIG_MAPS, config_map(namespace, "x"))
        recorder = Recorder(client, "penstock.dev/operator", "pod-1", pace=0.05)
        task = asyncio.ensure_future(recorder.run())

        def say(note: str) -> None:
            recorder.event(CONFIG_MAPS, made, reason="SyncFailed", note=note, warning=True)

        def events() -> dict[str, Json]:
            whole = (cache.raw(e.metadata.key) or {} for e in cache)
            return {event["note"]: event for event in whole}

        say("cannot")
        say("something else")
        async with asyncio.timeout(30):
            await until(cache, lambda: len(cache) == 2)
            for _ in range(5):
                say("cannot")
            await until(cache, lambda: 6 in (_count(e) for e in events().values()))
        recorder.stop()
        await task
        assert len(cache) == 2
        event = events()["cannot"]
        assert event["type"] == "Warning"
        assert event["regarding"]["uid"] == made.metadata.uid
        assert event["regarding"]["kind"] == "ConfigMap"
        assert event["reportingController"] == "penstock.dev/operator"


def _count(event: Json) -> int:
    return event.get("series", {}).get("count", 1)
