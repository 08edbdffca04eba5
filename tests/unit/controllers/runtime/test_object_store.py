"""Objects that are as they should be cost nothing; any change is looked at."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.kinds import SERVICES, StatefulSet
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.resource import Resource
from penstock.api.slinky.nodeset import NODESETS
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.controllers.runtime.report import Events
from penstock.kube import Applied, Applier, Client, Recorder
from penstock.kube.cache.store import Entry
from support import nodesets
from unit.controllers.stage import new_clusters
from unit.kube.fake_api import FakeApi


def manifest(port: int = 80) -> Json:
    meta = {"name": "web", "namespace": "slurm"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"port": port}}


class Stage:
    """What makes and changes objects, with a cache that shows what the test says."""

    def __init__(self) -> None:
        api = FakeApi()
        client, self._caches = Client(api), new_clusters().caches
        self._objects = ObjectStore(client, self._caches)
        self._events = Events(Recorder(client, "test", "test"), NODESETS)

    async def ensure(self, manifests: list[Json]) -> None:
        await self._objects.apply(nodesets.nodeset(1), self._events, manifests)

    def seen(self, version: str, uid: str = "1") -> None:
        live = manifest()
        live["metadata"] |= {"uid": uid, "resourceVersion": version}
        raw = msgspec.json.encode(live)
        self._caches.services._store.put(Entry(msgspec.json.decode(raw, type=SERVICES.type), raw))


def updated_ports(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ports of the Services that are updated from now on, each to version 5."""
    made: list[int] = []

    async def update(
        _: Applier, __: Resource[Any], asked: Json, live: Json | None, **___: Any
    ) -> Applied:
        made.append(asked["spec"]["port"])
        return Applied("updated", {"metadata": {"resourceVersion": "5"}}, ("spec.port",))

    monkeypatch.setattr(Applier, "ensure", update)
    return made


async def test_what_was_found_as_asked_is_compared_again_only_when_one_of_the_two_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []

    async def compare(
        _: Applier, __: Resource[Any], asked: Json, live: Json | None, **___: Any
    ) -> Applied:
        compared.append(asked["spec"]["port"])
        return Applied("unchanged", live or {})

    monkeypatch.setattr(Applier, "ensure", compare)
    stage = Stage()
    stage.seen("1")
    for asked in (manifest(), manifest(), manifest(81), manifest(81)):
        await stage.ensure([asked])
    assert compared == [80, 81]
    stage.seen("2")
    await stage.ensure([manifest(81)])
    stage.seen("3", uid="2")
    await stage.ensure([manifest(81)])
    assert compared == [80, 81, 81, 81]


async def test_an_update_that_the_cache_does_not_show_yet_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = updated_ports(monkeypatch)
    stage = Stage()
    stage.seen("3")
    await stage.ensure([manifest(81)])
    stage.seen("4")
    await stage.ensure([manifest(81)])
    assert made == [81]
    await stage.ensure([manifest(82)])
    stage.seen("6")
    await stage.ensure([manifest(82)])
    assert made == [81, 82, 82]


async def test_an_object_that_the_cache_did_not_show_when_it_was_updated_is_made_again_once_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = updated_ports(monkeypatch)
    stage = Stage()
    # First the watch is late, then it has shown the deletion: the cache has none either time.
    await stage.ensure([manifest()])
    await stage.ensure([manifest()])
    assert made == [80, 80]


async def test_a_stateful_set_is_as_our_update_left_it_until_the_watch_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def meta(version: int) -> Json:
        return {"name": "web", "namespace": "slurm", "uid": "1", "resourceVersion": f"{version}"}

    async def update(*_: object, **__: object) -> Applied:
        live = {"metadata": meta(5) | {"generation": 2}}
        return Applied("updated", live, ("spec.template",))

    def seen(version: int, generation: int) -> None:
        live = {"metadata": meta(version) | {"generation": generation}}
        raw = msgspec.json.encode(live)
        found = msgspec.json.decode(raw, type=StatefulSet)
        caches.stateful_sets._store.put(Entry(found, raw))

    def generation() -> int:
        found = caches.stateful_set("slurm/web")
        return found.metadata.generation if found is not None else 0

    monkeypatch.setattr(Applier, "ensure", update)
    client, caches = Client(FakeApi()), new_clusters().caches
    seen(3, generation=1)
    written: Json = {"kind": "StatefulSet", "metadata": meta(3), "spec": {"template": {}}}
    events = Events(Recorder(client, "test", "test"), NODESETS)
    await ObjectStore(client, caches).apply(nodesets.nodeset(1), events, [written])
    assert generation() == 2
    seen(6, generation=3)
    assert generation() == 3
