"""A cluster that the real soperator left, in a real API server, with pods for its StatefulSets.

The objects are those of tests/fixtures/nebius/left, created by soperator's field manager.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, cast

from penstock.api.kubernetes.kinds import (
    CLAIMS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    REVISIONS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
)
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.nebius.advanced_stateful_set import ADVANCED_STATEFUL_SETS
from penstock.api.nebius.jailed_config import JAILED_CONFIGS
from penstock.api.nebius.nodeset import NODE_SETS
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.kube import Client, ConflictError, NotFoundError
from penstock.kube.client.config import from_kubeconfig
from penstock.kube.client.transport import HttpTransport, Request
from penstock.local.node import Node
from penstock.render.parts.digest import digest
from penstock.simulation.kubelet.pod_manifests import owner_of, pod_of
from support.kubelet import MACHINE
from support.operator_kit import DEFINITIONS, Lab, lab, served
from support.soperator_left import MANAGER, NAMES, NODE_LABEL, SoperatorObjects

OWN: tuple[Resource[Any], ...] = (
    SLURM_CLUSTERS,
    NODE_SETS,
    CLAIMS,
    SECRETS,
    CONFIG_MAPS,
    JOBS,
    SERVICES,
    SERVICE_ACCOUNTS,
    ROLES,
    ROLE_BINDINGS,
    JAILED_CONFIGS,
    DEPLOYMENTS,
    ADVANCED_STATEFUL_SETS,
)
"""Kinds of the captured objects that this API server serves; others are of no concern here."""
KIND = {(one.api_version, one.kind): one for one in OWN}
PRIORITIES = Resource(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", KubeObject, namespaced=False
)
KRUISE: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "statefulsets.apps.kruise.io",
        # The name of the group is protected; the definition is a stand-in for OpenKruise's.
        "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in"},
    },
    "spec": {
        "group": "apps.kruise.io",
        "names": {"kind": "StatefulSet", "plural": "statefulsets", "listKind": "StatefulSetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
                "subresources": {"status": {}},
            }
        ],
    },
}
"""Without a schema: what soperator wrote is kept as it is."""


@dataclass
class Taken:
    """A namespace as soperator left it, with pods that run, and what they were then."""

    lab: Lab
    left: SoperatorObjects
    pods: dict[str, str] = field(default_factory=dict[str, str])
    secrets: dict[str, Json] = field(default_factory=dict[str, Any])

    async def raw(self, resource: Resource[Any], name: str) -> Json | None:
        """An object as it is now."""
        try:
            body = await self.lab.client.get_raw(resource, self.lab.namespace, name)
        except NotFoundError:
            return None
        return cast("Json", json.loads(body))

    async def all(self, resource: Resource[Any]) -> list[Json]:
        """The objects of a kind."""
        body = await self.lab.get_raw(resource.path(self.lab.namespace))
        found = cast("list[Json]", json.loads(body)["items"])
        return [{"apiVersion": resource.api_version, "kind": resource.kind, **one} for one in found]

    async def uids(self) -> dict[str, str]:
        """Uids of all pods by name."""
        found = await self.all(PODS)
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}

    async def has_all_pods(self) -> bool:
        """Whether OpenKruise's StatefulSets have their pods, which are made ready.

        OpenKruise makes the next worker of soperator 5.0 once the one before is ready.
        """
        every = await self.all(ADVANCED_STATEFUL_SETS)
        names = {one["metadata"]["name"] for one in every}
        for pod in await self.all(PODS):
            if pod["metadata"]["name"].rpartition("-")[0] in names:
                await self._ready(pod)
        return all(
            one.get("status", {}).get("replicas") == one["spec"]["replicas"] for one in every
        )

    async def play_controllers(self) -> None:
        """Finish what is to be orphaned, and have StatefulSets adopt pods that nobody controls."""
        for one in await self.all(ADVANCED_STATEFUL_SETS):
            meta = one["metadata"]
            if "orphan" not in (meta.get("finalizers") or ()):
                continue
            for pod in await self.all(PODS):
                await self._own(pod, [o for o in _owners(pod) if o["uid"] != meta["uid"]])
            with contextlib.suppress(NotFoundError):
                body = {"metadata": {"finalizers": None}}
                await self.lab.client.patch(
                    ADVANCED_STATEFUL_SETS, self.lab.namespace, meta["name"], body
                )
        for one in await self.all(STATEFUL_SETS):
            for pod in await self.all(PODS):
                stem = pod["metadata"]["name"].rpartition("-")[0]
                if stem == one["metadata"]["name"] and not _owners(pod):
                    await self._own(pod, [owner_of(one)])

    async def _ready(self, pod: Json) -> None:
        conditions: list[Json] = pod["status"].get("conditions") or []
        others = [one for one in conditions if one["type"] != "Ready"]
        if ("Ready", "True") in {(one["type"], one["status"]) for one in conditions}:
            return
        ready = {"type": "Ready", "status": "True"}
        body = {"status": {"phase": "Running", "conditions": [*others, ready]}}
        name, space = pod["metadata"]["name"], self.lab.namespace
        # Pods that Penstock added to an ephemeral NodeSet end on the way back.
        with contextlib.suppress(NotFoundError):
            await self.lab.client.patch(PODS, space, name, body, subresource="status")

    async def _own(self, pod: Json, owners: list[Json]) -> None:
        if owners == _owners(pod):
            return
        meta = pod["metadata"]
        body = {"metadata": {"uid": meta["uid"], "ownerReferences": owners or None}}
        with contextlib.suppress(NotFoundError, ConflictError):
            await self.lab.client.patch(PODS, self.lab.namespace, meta["name"], body)

    async def until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(90):
            while True:
                if await is_so():
                    return
                await asyncio.sleep(0.1)

    async def until_taken_over(self, *, real: bool = False) -> None:
        """Wait until nothing of OpenKruise is left, and each worker is ours.

        Unless controllers are `real`, they are played.
        """

        async def is_so() -> bool:
            if not real:
                await self.play_controllers()
            return await self._is_taken_over()

        await self.until(is_so)

    async def _is_taken_over(self) -> bool:
        ours = {"SlurmCluster", "NodeSet"}
        return not await self.all(ADVANCED_STATEFUL_SETS) and all(
            {one["kind"] for one in _owners(pod)} <= ours and _owners(pod)
            for pod in await self.all(PODS)
            if pod["metadata"]["name"].startswith("worker")
        )


def _owners(pod: Json) -> list[Json]:
    return [
        {k: v for k, v in one.items() if k != "blockOwnerDeletion"}
        for one in pod["metadata"].get("ownerReferences") or ()
    ]


@asynccontextmanager
async def left_by(
    node: Node, version: str, *, real: bool = False, kruise: bool = False
) -> AsyncGenerator[Taken]:
    """All that soperator left in a namespace, and pods that run.

    With `real` controllers and kubelets pods wait for a Kubernetes node that has soperator's label.
    With `kruise` OpenKruise's own controller runs and makes the pods of its StatefulSets.
    """
    name = NAMES[version]
    async with (
        _removed(node, name, real=real),
        lab(node, namespaces=[name], simulated=not real) as lab_,
    ):
        with contextlib.suppress(ConflictError):
            await lab_.client.create(DEFINITIONS, KRUISE)
        await served(lab_.client, ADVANCED_STATEFUL_SETS)
        if not real:
            await lab_.client.patch(NODES, "", MACHINE, {"metadata": {"labels": NODE_LABEL}})
        found = Taken(lab_, SoperatorObjects(version))
        soperator = Client(lab_.client.transport, field_manager=MANAGER)
        for one in found.left.objects:
            resource = KIND.get((one["apiVersion"], one["kind"]))
            if resource is not None:
                await _make(found, soperator, resource, one, real=real)
        if kruise:
            await found.until(found.has_all_pods)
        for one in () if kruise else await found.all(ADVANCED_STATEFUL_SETS):
            revision = digest(one["spec"]["template"])
            for number in range(one["spec"]["replicas"]):
                await _pod(lab_, pod_of(one, f"{one['metadata']['name']}-{number}", revision))
        if not real:
            await lab_.until(lambda: all(one.ready for one in lab_.seen["Pod"]), within=60)
        await lab_.calm()
        found.pods = await found.uids()
        found.secrets = {one["metadata"]["name"]: one["data"] for one in await found.all(SECRETS)}
        yield found


@asynccontextmanager
async def _removed(node: Node, space: str, *, real: bool) -> AsyncGenerator[None]:
    """Nothing of the namespace is there before or after: others use that name.

    No operator takes finalizers off, and without `real` controllers nobody ends a namespace.
    """
    transport = HttpTransport(from_kubeconfig([node.kubeconfig_path]))
    client = Client(transport)
    try:
        await _remove(client, space, real=real)
        yield
    finally:
        try:
            await _remove(client, space, real=real)
        finally:
            await transport.close()


async def _names_of(client: Client, resource: Resource[Any], space: str = "") -> list[str]:
    """Names of the objects of a kind."""
    body = (await client.transport.send(Request("GET", resource.path(space)))).body
    return [one["metadata"]["name"] for one in json.loads(body)["items"]]


async def _remove(client: Client, space: str, *, real: bool) -> None:
    home = f"/api/v1/namespaces/{space}"
    deleted = await client.transport.send(Request("DELETE", home))
    if deleted.status == HTTPStatus.NOT_FOUND:
        return
    every: tuple[Resource[Any], ...] = (*OWN, STATEFUL_SETS, REVISIONS, PODS)
    for resource in every:
        path = resource.path(space)
        listed = await client.transport.send(Request("GET", path))
        if listed.status == HTTPStatus.NOT_FOUND:
            # Its kind is not served yet, or no more.
            continue
        for one in json.loads(listed.body).get("items", ()):
            if one["metadata"].get("finalizers"):
                body: Json = {"metadata": {"finalizers": None}}
                # The garbage collector may be faster.
                with contextlib.suppress(NotFoundError):
                    await client.patch_raw(resource, space, one["metadata"]["name"], body)
        options = json.dumps({"gracePeriodSeconds": 0}).encode()
        await client.transport.send(Request("DELETE", path, body=options))
    for one in await _names_of(client, PRIORITIES):
        if one.startswith(space):
            await client.delete(PRIORITIES, "", one)
    if not real:
        live = (await client.transport.send(Request("GET", home))).body
        ended = json.dumps({**json.loads(live), "spec": {"finalizers": []}}).encode()
        await client.transport.send(Request("PUT", f"{home}/finalize", body=ended))
    async with asyncio.timeout(60):
        while True:
            if (await client.transport.send(Request("GET", home))).status == HTTPStatus.NOT_FOUND:
                return
            await asyncio.sleep(0.05)


async def _make(
    found: Taken, soperator: Client, resource: Resource[Any], one: Json, *, real: bool
) -> None:
    lab_, space = found.lab, found.lab.namespace
    made = found.left.fresh(one)
    if resource is ADVANCED_STATEFUL_SETS:
        _without_proc_mount(made["spec"]["template"]["spec"])
    own = one["metadata"].get("managedFields", [{}])[0].get("manager") == MANAGER
    for name in _priorities(made):
        body = {"metadata": {"name": name}, "value": 0}
        with contextlib.suppress(ConflictError):
            await lab_.client.create(PRIORITIES, body)
    live = await (soperator if own else lab_.user).create(resource, made)
    found.left.is_now(one, {"metadata": {"uid": live.metadata.uid}})
    if one["kind"] == "Job":
        name = live.metadata.name
        started: Json = {}
        if real:
            # The Job's own controller counts its pod, and a Job that has ended has none.
            at = await _started(found, name)
            started = {"startTime": at, "completionTime": at, "active": 0, "ready": 0}
        status: Json = {"status": {**one["status"], **started}}
        await soperator.patch(resource, space, name, status, subresource="status")


async def _started(found: Taken, job: str) -> str:
    """Since when a Job runs, once Kubernetes' controller has started it."""
    async with asyncio.timeout(60):
        status: Json = {}
        while "startTime" not in status:
            await asyncio.sleep(0.05)
            status = (await found.raw(JOBS, job) or {}).get("status", {})
    return cast("str", status["startTime"])


def _priorities(one: Json) -> list[str]:
    spec: Json = one.get("spec", {}).get("template", {}).get("spec", {})
    return [spec["priorityClassName"]] if "priorityClassName" in spec else []


def _without_proc_mount(spec: Json) -> None:
    # Kubernetes rejects Unmasked without a user namespace since 1.33, after the time of soperator
    # 1.23.
    for container in spec["containers"]:
        container.get("securityContext", {}).pop("procMount", None)


async def _pod(lab_: Lab, pod: Json) -> None:
    # The simulated Kubernetes node has no user namespaces.
    spec = {k: v for k, v in pod["spec"].items() if k != "hostUsers"}
    _without_proc_mount(spec)
    await lab_.client.create(PODS, {**pod, "spec": spec})


def managers(one: Json) -> set[str]:
    """Who owns fields of an object beside its status."""
    entries: list[Json] = one["metadata"].get("managedFields") or []
    return {entry["manager"] for entry in entries if not entry.get("subresource")}
