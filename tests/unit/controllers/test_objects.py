"""Objects that are as they should be cost nothing; any change is looked at."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.core import SERVICES
from penstock.api.meta import Json
from penstock.api.resource import Resource
from penstock.api.slinky.nodeset import NODESETS
from penstock.controllers.objects import Objects
from penstock.controllers.report import Events
from penstock.kube import Applied, Applier, Client, Recorder
from penstock.kube.store import Entry
from support import nodesets
from unit.controllers.stage import world_of
from unit.kube.fake_api import FakeApi


def manifest(port: int = 80) -> Json:
    meta = {"name": "web", "namespace": "slurm"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"port": port}}


async def test_what_was_found_as_asked_is_compared_again_only_when_one_of_the_two_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []

    async def compare(_: Applier, __: Resource[Any], asked: Json, live: Json | None) -> Applied:
        compared.append(asked["spec"]["port"])
        return Applied("unchanged", live or {})

    monkeypatch.setattr(Applier, "ensure", compare)
    api = FakeApi()
    client, world = Client(api), world_of(api)
    objects, recorder = Objects(client, world), Recorder(client, "test", "test")
    events, owner = Events(recorder, NODESETS), nodesets.nodeset(1)

    def seen(version: str, uid: str = "1") -> None:
        live = manifest()
        live["metadata"] |= {"uid": uid, "resourceVersion": version}
        raw = msgspec.json.encode(live)
        world.services._store.put(Entry(msgspec.json.decode(raw, type=SERVICES.type), raw))

    seen("1")
    for asked in (manifest(), manifest(), manifest(81), manifest(81)):
        await objects.ensure(owner, events, [asked])
    assert compared == [80, 81]
    seen("2")
    await objects.ensure(owner, events, [manifest(81)])
    seen("3", uid="2")
    await objects.ensure(owner, events, [manifest(81)])
    assert compared == [80, 81, 81, 81]


async def test_an_update_that_the_cache_does_not_show_yet_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []

    async def update(_: Applier, __: Resource[Any], asked: Json, live: Json | None) -> Applied:
        made.append(asked["spec"]["port"])
        return Applied("updated", {"metadata": {"resourceVersion": "5"}}, ("spec.port",))

    monkeypatch.setattr(Applier, "ensure", update)
    api = FakeApi()
    client, world = Client(api), world_of(api)
    objects, recorder = Objects(client, world), Recorder(client, "test", "test")
    events, owner = Events(recorder, NODESETS), nodesets.nodeset(1)

    def seen(version: str) -> None:
        live = manifest()
        live["metadata"] |= {"uid": "1", "resourceVersion": version}
        raw = msgspec.json.encode(live)
        world.services._store.put(Entry(msgspec.json.decode(raw, type=SERVICES.type), raw))

    seen("3")
    await objects.ensure(owner, events, [manifest(81)])
    seen("4")
    await objects.ensure(owner, events, [manifest(81)])
    assert made == [81]
    await objects.ensure(owner, events, [manifest(82)])
    seen("6")
    await objects.ensure(owner, events, [manifest(82)])
    assert made == [81, 82, 82]
