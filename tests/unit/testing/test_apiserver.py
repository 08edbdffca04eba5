"""The simulated API server does what kube-apiserver does, as far as an operator can tell."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from penstock.api.kubernetes.kinds import CONFIG_MAPS, PODS, ConfigMap
from penstock.api.kubernetes.meta import Json
from penstock.kube import (
    AlreadyExistsError,
    Applier,
    Cache,
    Client,
    ConflictError,
    NotFoundError,
    TooManyRequestsError,
)
from penstock.simulation.apiserver import ApiServer, Connection
from penstock.simulation.event_loop import EPOCH, LoopClock, simulate


class Site:
    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.server = ApiServer(lambda: EPOCH + loop.time())
        self.connection = Connection(self.server, "penstock")
        self.client = Client(self.connection, clock=LoopClock())
        self.user = Client(self.connection, clock=LoopClock(), field_manager="kubectl")


def simulated(tell: Callable[[Site], Awaitable[None]]) -> None:
    async def main() -> None:
        await tell(Site())

    simulate(main())


def config_map(name: str = "one", **data: str) -> Json:
    meta = {"name": name, "namespace": "a"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def pod(name: str = "one", *, node: str = "", labels: Json | None = None, **meta: object) -> Json:
    spec: Json = {"containers": [{"name": "main", "image": "i"}]}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": "a", "labels": labels or {}, **meta}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_versions_grow_and_an_empty_patch_changes_none() -> None:
    async def tell(site: Site) -> None:
        first = await site.client.create(CONFIG_MAPS, config_map(x="1"))
        with pytest.raises(AlreadyExistsError):
            await site.client.create(CONFIG_MAPS, config_map())
        second = await site.client.patch(CONFIG_MAPS, "a", "one", {"data": {"x": "2"}})
        third = await site.client.patch(CONFIG_MAPS, "a", "one", {"data": {"x": "2"}})
        assert int(first.metadata.resource_version) < int(second.metadata.resource_version)
        assert second.metadata == third.metadata

    simulated(tell)


@pytest.mark.parametrize("wrong", ["uid", "resource_version"])
def test_a_precondition_keeps_another_object(wrong: str) -> None:
    async def tell(site: Site) -> None:
        await site.client.create(CONFIG_MAPS, config_map())
        uid, version = ("1", None) if wrong == "uid" else (None, "1")
        with pytest.raises(ConflictError):
            await site.client.delete(CONFIG_MAPS, "a", "one", uid=uid, resource_version=version)
        await site.client.delete(CONFIG_MAPS, "a", "one")
        with pytest.raises(NotFoundError):
            await site.client.get(CONFIG_MAPS, "a", "one")

    simulated(tell)


def test_a_bound_pod_ends_in_grace_and_another_at_once() -> None:
    async def tell(site: Site) -> None:
        await site.client.create(PODS, pod("bound", node="machine"))
        await site.client.create(PODS, pod("waiting"))
        for name in ("bound", "waiting"):
            await site.client.delete(PODS, "a", name)
        found = await site.client.list(PODS)
        assert [one.metadata.name for one in found.items] == ["bound"]
        assert found.items[0].metadata.deletion_grace_period_seconds == 30
        await site.client.delete(PODS, "a", "bound", grace_period_seconds=0)
        assert not (await site.client.list(PODS)).items

    simulated(tell)


def test_a_finalizer_keeps_a_deleted_object() -> None:
    async def tell(site: Site) -> None:
        manifest = config_map()
        manifest["metadata"]["finalizers"] = ["penstock.dev/x"]
        await site.client.create(CONFIG_MAPS, manifest)
        await site.client.delete(CONFIG_MAPS, "a", "one")
        assert (await site.client.get(CONFIG_MAPS, "a", "one")).metadata.deleting
        await site.client.patch(CONFIG_MAPS, "a", "one", {"metadata": {"finalizers": None}})
        with pytest.raises(NotFoundError):
            await site.client.get(CONFIG_MAPS, "a", "one")

    simulated(tell)


def test_what_is_owned_goes_with_its_last_owner() -> None:
    async def tell(site: Site) -> None:
        owners = [await site.client.create(CONFIG_MAPS, config_map(name)) for name in "xy"]
        references = [{"kind": "ConfigMap", "name": "o", "uid": o.metadata.uid} for o in owners]
        await site.client.create(PODS, pod(ownerReferences=references))
        await site.client.delete(CONFIG_MAPS, "a", "x")
        await asyncio.sleep(5)
        assert (await site.client.list(PODS)).items
        await site.client.delete(CONFIG_MAPS, "a", "y")
        await asyncio.sleep(5)
        assert not (await site.client.list(PODS)).items

    simulated(tell)


def test_status_and_the_rest_are_written_apart() -> None:
    async def tell(site: Site) -> None:
        await site.client.create(PODS, pod())
        await site.client.patch(PODS, "a", "one", {"status": {"phase": "Running"}})
        assert (await site.client.get(PODS, "a", "one")).status.phase == "Pending"
        conditions = [{"type": "Ready", "status": "True"}, {"type": "Mine", "status": "True"}]
        for one in conditions:
            body = {"status": {"conditions": [one]}}
            await site.client.patch(PODS, "a", "one", body, kind="strategic", subresource="status")
        gone = {"status": {"conditions": [{"$patch": "delete", "type": "Mine"}]}}
        await site.client.patch(PODS, "a", "one", gone, kind="strategic", subresource="status")
        found = await site.client.get(PODS, "a", "one")
        assert found.ready
        assert found.condition("Mine") is None

    simulated(tell)


def test_a_budget_stands_against_an_eviction() -> None:
    async def tell(site: Site) -> None:
        path = "/apis/policy/v1/namespaces/a/poddisruptionbudgets"
        selector = {"matchLabels": {"app": "x"}}
        budget = {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 0, "selector": selector}}
        site.server.ask("POST", path, budget)
        await site.client.create(PODS, pod(node="machine", labels={"app": "x"}))
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await site.client.patch(PODS, "a", "one", ready, subresource="status")
        eviction = {"metadata": {"name": "one", "namespace": "a"}}
        with pytest.raises(TooManyRequestsError):
            await site.client.create(PODS, eviction, subresource="eviction")

    simulated(tell)


class TestApply:
    """Server-side apply, through the same Applier that the operator uses."""

    def test_what_is_asked_for_no_more_is_removed(self) -> None:
        async def tell(site: Site) -> None:
            applier = Applier(site.client)
            made = await applier.ensure(CONFIG_MAPS, config_map(x="1", y="1"), None)
            again = await applier.ensure(CONFIG_MAPS, config_map(x="1", y="1"), made.live)
            assert (made.done, again.done) == ("created", "unchanged")
            less = await applier.ensure(CONFIG_MAPS, config_map(x="1"), made.live)
            assert (less.done, less.live["data"]) == ("updated", {"x": "1"})

        simulated(tell)

    def test_an_edit_is_taken_back_and_what_others_add_stays(self) -> None:
        async def tell(site: Site) -> None:
            applier = Applier(site.client)
            await applier.ensure(CONFIG_MAPS, config_map(x="1"), None)
            edit = {"data": {"x": "edited", "theirs": "1"}}
            site.server.ask("PATCH", "/api/v1/namespaces/a/configmaps/one", edit, user="kubectl")
            live = site.server.find("/configmaps", "a", "one")
            mended = await applier.ensure(CONFIG_MAPS, config_map(x="1"), live)
            assert mended.changed[0] == "data.x"
            assert mended.live["data"] == {"x": "1", "theirs": "1"}

        simulated(tell)

    def test_an_apply_without_force_yields_to_another_manager(self) -> None:
        async def tell(site: Site) -> None:
            await site.user.apply(CONFIG_MAPS, config_map(x="1"))
            with pytest.raises(ConflictError):
                await site.client.apply(CONFIG_MAPS, config_map(x="2"), force=False)
            await site.client.apply(CONFIG_MAPS, config_map(x="1"), force=False)

        simulated(tell)

    def test_what_a_create_made_is_adopted(self) -> None:
        async def tell(site: Site) -> None:
            await site.client.create(CONFIG_MAPS, config_map(x="1", y="1"))
            live = site.server.find("/configmaps", "a", "one")
            found = await Applier(site.client).ensure(CONFIG_MAPS, config_map(x="1"), live)
            assert found.live["data"] == {"x": "1"}

        simulated(tell)

    def test_items_of_a_keyed_list_have_owners_of_their_own(self) -> None:
        async def tell(site: Site) -> None:
            path = "/api/v1/namespaces/a/services/s"
            for user, number in (("one", 1), ("two", 2)):
                spec = {"ports": [{"port": number, "name": user}]}
                site.server.ask(
                    "PATCH", path, {"metadata": {}, "spec": spec}, kind="apply", user=user
                )
            found = site.server.find("/services", "a", "s")
            assert found is not None
            assert {one["port"] for one in found["spec"]["ports"]} == {1, 2}
            empty: Json = {"metadata": {}, "spec": {}}
            site.server.ask("PATCH", path, empty, kind="apply", user="one")
            found = site.server.find("/services", "a", "s")
            assert found is not None
            assert [one["port"] for one in found["spec"]["ports"]] == [2]

        simulated(tell)

    def test_fields_that_a_real_server_noted_are_read(self) -> None:
        """It notes `.` for a container of fields as well, which a copy of its objects has."""

        async def tell(site: Site) -> None:
            volume: Json = {"name": "a", "emptyDir": {}}
            given = {"volumes": [volume], "hostname": "h", "restartPolicy": "Always"}
            spec = {"template": {"spec": given}}
            owned: Json = {
                "f:hostname": {},
                "f:volumes": {'k:{"name":"a"}': {".": {}, "f:emptyDir": {}, "f:name": {}}},
            }
            entry = {"manager": "penstock", "operation": "Apply", "time": "2027-01-01T00:00:00Z"}
            fields: Json = {"f:spec": {"f:template": {"f:spec": owned}}}
            meta: Json = {"name": "w", "namespace": "a", "uid": "u", "resourceVersion": "1"}
            meta["managedFields"] = [{**entry, "fieldsV1": fields}]
            site.server.store.put("apps/statefulsets", ("a", "w"), {"metadata": meta, "spec": spec})
            path = "/apis/apps/v1/namespaces/a/statefulsets/w"
            for asked in ([volume], []):
                body: Json = {"metadata": {}, "spec": {"template": {"spec": {"volumes": asked}}}}
                site.server.ask("PATCH", path, body, kind="apply", user="penstock")
                found = site.server.find("apps/statefulsets", "a", "w") or {}
                had: Json = found["spec"]["template"]["spec"]
                assert had == {"restartPolicy": "Always"} | ({"volumes": asked} if asked else {})

        simulated(tell)


class TestWatch:
    """A cache on top of a watch that is treated badly."""

    @pytest.mark.parametrize("fault", ["cut", "expire", "duplicate", "delay_events", "end"])
    def test_a_cache_becomes_what_the_server_has(self, fault: str) -> None:
        async def tell(site: Site) -> None:
            cache = Cache[ConfigMap](site.client, CONFIG_MAPS)
            running = asyncio.create_task(cache.run())
            await site.client.create(CONFIG_MAPS, config_map("before"))
            await cache.wait_synced()
            if fault == "duplicate":
                site.connection.duplicate = True
            elif fault == "end":
                await asyncio.sleep(500)
            else:
                getattr(site.connection, fault)()
            await site.client.create(CONFIG_MAPS, config_map("after"))
            await site.client.delete(CONFIG_MAPS, "a", "before")
            if fault == "delay_events":
                await asyncio.sleep(30)
                assert cache.get("a/before") is not None
                site.connection.release_events()
            await asyncio.sleep(30)
            assert [one.metadata.name for one in cache] == ["after"]
            running.cancel()

        simulated(tell)

    def test_an_object_that_is_no_longer_selected_is_gone(self) -> None:
        async def tell(site: Site) -> None:
            cache = Cache(site.client, PODS, labels="app in (x,y)")
            running = asyncio.create_task(cache.run())
            await site.client.create(PODS, pod(labels={"app": "x"}))
            await cache.wait_synced()
            await asyncio.sleep(1)
            assert len(cache) == 1
            await site.client.patch(PODS, "a", "one", {"metadata": {"labels": {"app": "z"}}})
            await asyncio.sleep(1)
            assert len(cache) == 0
            running.cancel()

        simulated(tell)
