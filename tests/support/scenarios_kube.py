"""What is asked of the simulated API server and of the real one: they give the same answers.

Each scenario notes the answers, without what differs from run to run (versions, uids, times).
`tests/api/test_simulated_kubernetes.py` runs them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from penstock.api.kubernetes.kinds import BUDGETS, CONFIG_MAPS, DEPLOYMENTS, PODS
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.kube import ApiError, Client, Selector
from penstock.kube.cache.reflector import INITIAL_END

Notes = list[Any]


@dataclass
class Kube:
    """An API server as two clients see it: `penstock` and `kubectl`, in one namespace."""

    client: Client
    user: Client
    space: str
    versions: dict[str, str] = field(default_factory=dict[str, str])

    async def told(self, call: Awaitable[Any], *paths: str) -> Any:
        """The error's name, or the values at these paths and whether the version changed."""
        try:
            answer = await call
        except ApiError as error:
            return type(error).__name__
        if answer is None:
            return "done"
        obj: Json = msgspec.json.decode(answer)
        meta: Json = obj.get("metadata", {})
        if not paths:
            return "done"
        key = f"{obj.get('kind')} {meta.get('name')}"
        version = meta.get("resourceVersion", "")
        changed = self.versions.get(key) != version
        self.versions[key] = version
        return [*(_at(obj, path) for path in paths), "changed" if changed else "same"]

    async def create(self, resource: Resource[Any], manifest: Json, *paths: str) -> Any:
        async def made() -> bytes:
            await self.client.create(resource, manifest)
            return await self.client.get_raw(resource, self.space, manifest["metadata"]["name"])

        return await self.told(made(), *paths)

    def patch(self, resource: Resource[Any], name: str, patch: Any, **how: Any) -> Awaitable[bytes]:
        return self.user.patch_raw(resource, self.space, name, patch, **how)

    def get(self, resource: Resource[Any], name: str) -> Awaitable[bytes]:
        return self.client.get_raw(resource, self.space, name)

    def delete(self, resource: Resource[Any], name: str, **how: Any) -> Awaitable[None]:
        return self.client.delete(resource, self.space, name, **how)

    def config_map(self, name: str = "one", *, meta: Json | None = None, **data: str) -> Json:
        metadata = {"name": name, "namespace": self.space, **(meta or {})}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    def pod(self, name: str, **spec: Any) -> Json:
        metadata = {"name": name, "namespace": self.space, "labels": {"app": name}}
        container = {"name": "main", "image": "example.com/none:1"}
        full = {"containers": [container], "automountServiceAccountToken": False, **spec}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": full}

    async def version(self, name: str = "one") -> str:
        """The resourceVersion of a ConfigMap."""
        return (await self.client.get(CONFIG_MAPS, self.space, name)).metadata.resource_version

    async def events(self, version: str, count: int, labels: str = "") -> Any:
        """The next events of the ConfigMaps after a version, or the error's name."""
        selector = Selector(self.space, labels)
        found: Notes = []
        try:
            async with asyncio.timeout(20), self._watch(selector, version) as stream:
                async for line in stream.lines():
                    event: Json = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        return [*found, event["object"]["code"]]
                    name = event["object"]["metadata"].get("name")
                    if event["type"] == "BOOKMARK" or name == "kube-root-ca.crt":
                        continue
                    found.append([event["type"], name, event["object"].get("data")])
                    if len(found) == count:
                        return found
        except ApiError as error:
            return type(error).__name__
        return found

    def _watch(self, selector: Selector, version: str) -> Any:
        return self.client.watch(CONFIG_MAPS, selector, {"resourceVersion": version})


async def writes(kube: Kube) -> Notes:
    """Create, patch in each way, and what must not exist twice or not at all."""
    return [
        await kube.create(CONFIG_MAPS, kube.config_map(x="1"), "data"),
        await kube.create(CONFIG_MAPS, kube.config_map(x="1"), "data"),
        await kube.told(kube.patch(CONFIG_MAPS, "one", {"data": {"x": "2", "y": "3"}}), "data"),
        await kube.told(kube.patch(CONFIG_MAPS, "one", {"data": {"x": "2"}}), "data"),
        await kube.told(kube.patch(CONFIG_MAPS, "one", {"data": {"y": None}}), "data"),
        await kube.told(kube.patch(CONFIG_MAPS, "two", {"data": {"y": None}}), "data"),
        await kube.told(
            kube.patch(
                CONFIG_MAPS, "one", [{"op": "add", "path": "/data/z", "value": "4"}], kind="json"
            ),
            "data",
        ),
        await kube.told(
            kube.patch(
                CONFIG_MAPS, "one", [{"op": "test", "path": "/data/z", "value": "5"}], kind="json"
            ),
            "data",
        ),
        await kube.told(kube.get(CONFIG_MAPS, "two"), "data"),
        await kube.told(kube.delete(CONFIG_MAPS, "one")),
        await kube.told(kube.delete(CONFIG_MAPS, "one")),
    ]


async def preconditions(kube: Kube) -> Notes:
    """A uid or a version that is not the object's keeps it as it is."""
    notes = [await kube.create(CONFIG_MAPS, kube.config_map(x="1"), "data")]
    meta = (await kube.client.get(CONFIG_MAPS, kube.space, "one")).metadata
    old, uid = meta.resource_version, meta.uid
    other = "00000000-0000-4000-8000-000000000000"
    for change in ({"uid": other}, {"uid": uid}, {"resourceVersion": old}):
        body = {"metadata": change, "data": {"x": f"by {sorted(change)}"}}
        notes.append(await kube.told(kube.patch(CONFIG_MAPS, "one", body), "data"))
    new = await kube.version()
    notes += [
        await kube.told(kube.delete(CONFIG_MAPS, "one", uid=other)),
        await kube.told(kube.delete(CONFIG_MAPS, "one", uid=uid, resource_version=old)),
        await kube.told(kube.delete(CONFIG_MAPS, "one", uid=uid, resource_version=new)),
        await kube.told(kube.delete(CONFIG_MAPS, "one", uid=uid, resource_version=new)),
    ]
    pinned = kube.config_map(x="1", meta={"uid": uid})
    notes.append(await kube.told(kube.client.apply_raw(CONFIG_MAPS, pinned), "data"))
    return notes


async def apply(kube: Kube) -> Notes:
    """Server-side apply: who owns what, conflicts, force, and fields that are asked for no more."""
    both, one = kube.config_map(x="1", y="1"), kube.config_map(x="1")
    owners = "metadata.managedFields"
    return [
        await kube.told(kube.client.apply_raw(CONFIG_MAPS, both), "data", owners),
        await kube.told(kube.client.apply_raw(CONFIG_MAPS, both), "data", owners),
        await kube.told(kube.patch(CONFIG_MAPS, "one", {"data": {"x": "2"}}), "data", owners),
        await kube.told(kube.client.apply_raw(CONFIG_MAPS, both, force=False), "data"),
        await kube.told(kube.client.apply_raw(CONFIG_MAPS, both), "data", owners),
        await kube.told(kube.patch(CONFIG_MAPS, "one", {"data": {"z": "9"}}), "data", owners),
        await kube.told(kube.client.apply_raw(CONFIG_MAPS, one), "data", owners),
    ]


async def watches(kube: Kube) -> Notes:
    """Go on from a version: every event after it, once and in order; DELETED for what leaves."""
    await kube.create(CONFIG_MAPS, kube.config_map("zero", meta={"labels": {"a": "b"}}))
    start = await kube.version("zero")
    await kube.create(CONFIG_MAPS, kube.config_map(x="1", meta={"labels": {"a": "b"}}))
    middle = await kube.version()
    await kube.patch(CONFIG_MAPS, "one", {"data": {"x": "2"}})
    await kube.patch(CONFIG_MAPS, "one", {"metadata": {"labels": {"a": "c"}}})
    await kube.delete(CONFIG_MAPS, "one")
    return [
        await kube.events(start, 4),
        await kube.events(middle, 3),
        await kube.events(start, 3, labels="a=b"),
    ]


async def initial_events(kube: Kube) -> Notes:
    """A watch that lists first: all objects, then the bookmark that ends the list."""
    for name in ("one", "two"):
        await kube.create(CONFIG_MAPS, kube.config_map(name, x=name))
    params = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    found: Notes = []
    async with asyncio.timeout(20):
        async with kube.client.watch(CONFIG_MAPS, Selector(kube.space), params) as stream:
            async for line in stream.lines():
                event: Json = msgspec.json.decode(line)
                meta = event["object"]["metadata"]
                if event["type"] == "BOOKMARK":
                    return [sorted(found), meta["annotations"][INITIAL_END]]
                if meta["name"] != "kube-root-ca.crt":
                    found.append([event["type"], meta["name"]])
    return found


async def finalizers(kube: Kube) -> Notes:
    """An object with a finalizer stays until that is taken off."""
    held = kube.config_map(x="1", meta={"finalizers": ["penstock.dev/test"]})
    deleting = "metadata.deletionTimestamp"
    return [
        await kube.create(CONFIG_MAPS, held, "data", deleting),
        await kube.told(kube.delete(CONFIG_MAPS, "one")),
        await kube.told(kube.get(CONFIG_MAPS, "one"), "data", deleting),
        await kube.told(kube.patch(CONFIG_MAPS, "one", {"data": {"x": "2"}}), "data", deleting),
        await kube.told(kube.patch(CONFIG_MAPS, "one", {"metadata": {"finalizers": None}})),
        await kube.told(kube.get(CONFIG_MAPS, "one")),
    ]


async def statuses(kube: Kube) -> Notes:
    """The status and the rest are written apart, and only the rest counts generations."""
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "example.com/none:1"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "web", "namespace": kube.space}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    shown = ("spec.replicas", "status.replicas", "metadata.generation", "metadata.labels")
    changes = ({"replicas": 2}, {"replicas": 2})
    status = {"spec": {"replicas": 7}, "status": {"replicas": 1}}
    return [
        await kube.create(DEPLOYMENTS, body, *shown),
        await kube.told(kube.patch(DEPLOYMENTS, "web", status, subresource="status"), *shown),
        *[
            await kube.told(kube.patch(DEPLOYMENTS, "web", {"spec": one}), *shown)
            for one in changes
        ],
        await kube.told(
            kube.patch(DEPLOYMENTS, "web", {"metadata": {"labels": {"a": "b"}}}), *shown
        ),
        await kube.told(kube.patch(DEPLOYMENTS, "web", {"status": {"replicas": 5}}), *shown),
    ]


async def pods(kube: Kube) -> Notes:
    """Conditions are merged by type; a bound pod is given time to end, another is not."""

    def conditions(*changes: Json) -> Awaitable[bytes]:
        body = {"status": {"conditions": list(changes)}}
        return kube.patch(PODS, "bound", body, kind="strategic", subresource="status")

    deleting = ("metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds")
    return [
        await kube.create(PODS, kube.pod("bound", nodeName="machine"), *deleting),
        await kube.told(conditions({"type": "A", "status": "True"}), "status.conditions"),
        await kube.told(conditions({"type": "B", "status": "True"}), "status.conditions"),
        await kube.told(conditions({"type": "A", "status": "False"}), "status.conditions"),
        await kube.told(conditions({"type": "A", "$patch": "delete"}), "status.conditions"),
        await kube.told(kube.delete(PODS, "bound")),
        await kube.told(kube.get(PODS, "bound"), *deleting),
        await kube.told(kube.delete(PODS, "bound")),
        await kube.told(kube.delete(PODS, "bound", grace_period_seconds=0)),
        await kube.told(kube.get(PODS, "bound")),
        await kube.create(PODS, kube.pod("free"), *deleting),
        await kube.told(kube.delete(PODS, "free")),
        await kube.told(kube.get(PODS, "free")),
    ]


async def evictions(kube: Kube) -> Notes:
    """Only a PodDisruptionBudget that allows none rejects an eviction."""
    ready = {"type": "Ready", "status": "True"}
    notes = [await kube.create(PODS, kube.pod("web"))]
    running = {"status": {"phase": "Running", "conditions": [ready]}}
    await kube.patch(PODS, "web", running, kind="strategic", subresource="status")
    meta = {"name": "none", "namespace": kube.space}
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta}
    notes.append(await kube.create(BUDGETS, {**budget, "spec": spec}))
    # What the disruption controller would write, of which there is none here.
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0}
    status = {"status": {"observedGeneration": 1, **counts}}
    await kube.patch(BUDGETS, "none", status, subresource="status")
    notes.append(await _evicted(kube))
    notes.append(await kube.told(kube.delete(BUDGETS, "none")))
    notes += [await _evicted(kube), await kube.told(kube.get(PODS, "web"))]
    return notes


EVICTED = Resource("", "v1", "Pod", "pods", KubeObject)
"""An eviction is answered by a Status, which is no pod."""


async def _evicted(kube: Kube) -> str:
    meta = {"name": "web", "namespace": kube.space}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    try:
        await kube.client.create(EVICTED, body, subresource="eviction")
    except ApiError as error:
        return type(error).__name__
    return "done"


KUBERNETES = (
    writes,
    preconditions,
    apply,
    watches,
    initial_events,
    finalizers,
    statuses,
    pods,
    evictions,
)


def _at(obj: Json, path: str) -> Any:
    value: Any = obj
    for step in path.split("."):
        value = cast("Json", value).get(step) if isinstance(value, dict) else None
    if path == "metadata.deletionTimestamp":
        return value is not None
    if path == "metadata.managedFields":
        return sorted(
            [one["manager"], one["operation"], json.dumps(one.get("fieldsV1"), sort_keys=True)]
            for one in cast("list[Json]", value)
        )
    if path == "status.conditions":
        return sorted([one["type"], one["status"]] for one in cast("list[Json]", value or []))
    return value
