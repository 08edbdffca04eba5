"""The operator in a test's own process, before a real API server, with simulated kubelets.

The operator runs under the rights of its ClusterRole: what it may not do fails here too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import (
    BUDGETS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    PODS,
    REVISIONS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
)
from penstock.api.kubernetes.meta import Condition, Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.penstock.partition import PARTITIONS
from penstock.api.slinky.accounting import ACCOUNTINGS
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.loginset import LOGINSETS
from penstock.api.slinky.nodeset import NODESETS
from penstock.api.slinky.restapi import RESTAPIS, RestApi
from penstock.api.slinky.token import TOKENS
from penstock.base import yaml_text
from penstock.controllers.operator import REPORTER, Operator
from penstock.controllers.runtime.settings import Settings
from penstock.kube import Cache, Client, HttpTransport, Lease, Manager, Recorder, from_kubeconfig
from penstock.kube.client.credentials import Access, Credentials
from penstock.kube.client.transport import Request, Response, Transport
from penstock.simulation.slurm.reconfigure import Sidecars
from penstock.simulation.slurm.slurmctld import SimulatedSlurmctld
from penstock.simulation.slurm.slurmrestd import SimulatedSlurmrestd
from penstock.slurm.partition.declaration import live_only, partition_lines
from support.kubelet import MACHINE, Kubelet

VOLATILE = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"}
ASSIGNED = {"clusterIP", "clusterIPs", "nodeName", "nodePort"}
PASSING = {marks.CONFIG_CANDIDATE}
"""What was tried last, which is nothing where slurmctld began with the last files."""
ROOT = Path(__file__).parents[2]
IDENTITY = "system:serviceaccount:penstock-system:penstock-operator"
OPERATOR_NAMESPACE = "penstock-system"
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", KubeObject, namespaced=False)
DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    KubeObject,
    namespaced=False,
)
RBAC = "rbac.authorization.k8s.io"
INSTALLED = {
    "Namespace": NAMESPACES,
    "ServiceAccount": Resource("", "v1", "ServiceAccount", "serviceaccounts", KubeObject),
    "ClusterRole": Resource(RBAC, "v1", "ClusterRole", "clusterroles", KubeObject, False),
    "ClusterRoleBinding": Resource(
        RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", KubeObject, False
    ),
    "Role": Resource(RBAC, "v1", "Role", "roles", KubeObject),
    "RoleBinding": Resource(RBAC, "v1", "RoleBinding", "rolebindings", KubeObject),
}
KINDS: tuple[Resource[Any], ...] = (
    CONTROLLERS,
    RESTAPIS,
    NODESETS,
    LOGINSETS,
    ACCOUNTINGS,
    TOKENS,
    PARTITIONS,
)
MADE: tuple[Resource[Any], ...] = (
    SERVICES,
    CONFIG_MAPS,
    SECRETS,
    STATEFUL_SETS,
    DEPLOYMENTS,
    BUDGETS,
    PODS,
    REVISIONS,
)
"""What the operator makes objects of."""
BY_KIND: dict[str, Resource[Any]] = {one.kind: one for one in (*KINDS, *MADE)}


class Node(Protocol):
    """What is needed of the fixture `api_node`."""

    @property
    def kubeconfig_path(self) -> Path: ...


class Impersonating:
    """An administrator's credentials that act as somebody with fewer rights."""

    def __init__(self, inner: Credentials, user: str) -> None:
        self._inner = inner
        self._user = user

    async def access(self) -> Access:
        access = await self._inner.access()
        return Access({**access.headers, "Impersonate-User": self._user}, access.ssl)

    def expire(self) -> None:
        self._inner.expire()


class Recording:
    """A transport that notes every write, as `VERB path`, events and the Lease left out.

    `log` answers for the kubelets, which are not there, when a container's log is asked for.
    """

    def __init__(
        self, inner: Transport, log: Callable[[str, str, str], str | None] | None = None
    ) -> None:
        self._inner = inner
        self._log = log
        self.writes: list[str] = []
        self.bodies: list[bytes] = []

    async def send(self, request: Request) -> Response:
        if self._log is not None and request.path.endswith("/log"):
            *_, namespace, _, name, _ = request.path.split("/")
            text = self._log(namespace, name, request.params["container"])
            return Response(404, b"{}") if text is None else Response(200, text.encode())
        if request.method != "GET" and "/leases" not in request.path:
            self.writes.append(f"{request.method} {request.path}")
            self.bodies.append(request.body)
        return await self._inner.send(request)

    def stream(self, request: Request) -> Any:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


@dataclass
class Running:
    """An operator that runs."""

    operator: Operator
    manager: Manager
    transport: Recording
    done: asyncio.Task[None]

    @property
    def writes(self) -> list[str]:
        """Every write it sent."""
        return self.transport.writes

    async def stop(self) -> None:
        """End it in order."""
        self.manager.stop()
        await self.done


@dataclass
class Cluster:
    """One namespace with a Slurm of its own."""

    namespace: str
    rest: SimulatedSlurmrestd
    slurm: SimulatedSlurmctld = field(init=False)

    def __post_init__(self) -> None:
        self.slurm = self.rest.slurmctld


class Lab:
    """An API server with simulated kubelets, and what a user sees of it."""

    def __init__(
        self, node: Node, client: Client, clusters: Mapping[str, Cluster], *, simulated: bool = True
    ) -> None:
        self.client = client
        self.user = Client(client.transport, field_manager="kubectl")
        self.clusters = clusters
        self.cluster = next(iter(clusters.values()))
        self.namespace = self.cluster.namespace
        self.slurm = self.cluster.slurm
        self.rest = self.cluster.rest
        self._node = node
        self.manager = Manager(client, namespaces=tuple(clusters))
        self.seen: dict[str, Cache[Any]] = {
            one.kind: self.manager.cache(one, raw=True) for one in (*KINDS, *MADE)
        }
        self._changed = asyncio.Event()
        for cache in self.seen.values():
            cache.subscribe(lambda _, __: self._changed.set())
        if simulated:
            self.kubelet = Kubelet(self.manager, self._slurm_of)
        self._read: dict[str, str] = {}
        self.sidecars = Sidecars(self._find, self._reads)

    def _find(self, resource: str, namespace: str, name: str) -> Json | None:
        kind = {"/pods": "Pod", "/configmaps": "ConfigMap", "/secrets": "Secret"}[resource]
        return self.seen[kind].raw(f"{namespace}/{name}")

    def _reads(self, pod: Json, files: Mapping[str, str]) -> None:
        space, text = pod["metadata"]["namespace"], files.get("slurm.conf", "")
        before, self._read[space] = self._read.get(space), text
        slurm = self._slurm_of(space)
        if slurm is None:
            return
        # Nothing here brings files and marks of a pod in their order, so partitions that came by
        # slurmrestd are left as they are.
        told = partition_lines(text).keys() <= slurm.partitions.keys()
        if before is None or not live_only(before, text) or not told:
            # slurmctld began before anybody asked the container: it has all changes since then.
            since = dict(slurm.partitions) if before is None else {}
            slurm.read(text)
            slurm.partitions.update({k: v for k, v in since.items() if k not in slurm.partitions})

    def _slurm_of(self, namespace: str) -> SimulatedSlurmctld | None:
        found = self.clusters.get(namespace)
        return found.slurm if found else None

    def url_of(self, restapi: RestApi) -> str:
        """Where the simulated slurmrestd of a RestApi listens."""
        return self.clusters[restapi.metadata.namespace].rest.url

    @asynccontextmanager
    async def operator(
        self, *, lease: bool = False, name: str = "one", settings: Settings | None = None
    ) -> AsyncGenerator[Running]:
        """Run an operator; it is stopped at the end."""
        config = from_kubeconfig([self._node.kubeconfig_path])
        limited = Impersonating(config.credentials, IDENTITY)
        inner = HttpTransport(replace(config, credentials=limited))
        transport = Recording(inner, self.sidecars.log)
        client = Client(transport)
        held = (
            Lease(Client(transport), OPERATOR_NAMESPACE, f"test-{self.namespace}", name)
            if lease
            else None
        )
        recorder = Recorder(client, REPORTER, name)
        manager = Manager(client, lease=held, recorder=recorder, namespaces=tuple(self.clusters))
        operator = Operator(client, manager, recorder, settings or Settings(), url_of=self.url_of)
        task = asyncio.ensure_future(manager.run())
        running = Running(operator, manager, transport, task)
        try:
            yield running
        finally:
            await running.stop()
            await transport.close()

    async def apply(self, *manifests: Json, namespace: str = "") -> None:
        """`kubectl apply --server-side` in a namespace of the lab."""
        for manifest in manifests:
            meta = {**manifest["metadata"], "namespace": namespace or self.namespace}
            await self.user.apply(BY_KIND[manifest["kind"]], {**manifest, "metadata": meta})

    async def patch(self, kind: str, name: str, patch: Json, subresource: str = "") -> None:
        """`kubectl patch --type=merge`."""
        resource = BY_KIND[kind]
        await self.user.patch(resource, self.namespace, name, patch, subresource=subresource)

    async def delete(self, kind: str, name: str) -> None:
        """`kubectl delete`."""
        await self.user.delete(BY_KIND[kind], self.namespace, name)

    def get(self, kind: str, name: str, namespace: str = "") -> Json | None:
        """An object as it is now."""
        return self.seen[kind].raw(f"{namespace or self.namespace}/{name}")

    async def get_raw(self, path: str) -> bytes:
        """What the API server answers to a GET."""
        return (await self.client.transport.send(Request("GET", path))).body

    def all(self, kind: str, namespace: str = "") -> list[Json]:
        """The objects of a kind, by name."""
        cache, space = self.seen[kind], namespace or self.namespace
        keys = sorted(one.metadata.key for one in cache if one.metadata.namespace == space)
        return [cast("Json", cache.raw(key)) for key in keys]

    def names(self, kind: str, namespace: str = "") -> list[str]:
        """Names of the objects of a kind."""
        return [one["metadata"]["name"] for one in self.all(kind, namespace)]

    def workers(self) -> list[str]:
        """Names of the worker pods that are not terminating."""
        return [
            pod["metadata"]["name"]
            for pod in self.all("Pod")
            if pod["metadata"]["labels"].get("app.kubernetes.io/name") == "slurmd"
            and not pod["metadata"].get("deletionTimestamp")
        ]

    def condition(
        self, kind: str, name: str, type_: str = "Ready", namespace: str = ""
    ) -> Condition | None:
        """A condition of the object's present generation."""
        found = self.seen[kind].get(f"{namespace or self.namespace}/{name}")
        if found is None or found.status.observed_generation != found.metadata.generation:
            return None
        every: tuple[Condition, ...] = found.status.conditions
        return next((one for one in every if one.type == type_), None)

    def ready(self, kind: str, name: str, namespace: str = "") -> bool:
        """Whether an object's Ready is true."""
        found = self.condition(kind, name, namespace=namespace)
        return found is not None and found.status == "True"

    def has_reason(self, kind: str, name: str, reason: str) -> bool:
        """Whether an object is not ready for this reason."""
        found = self.condition(kind, name)
        return found is not None and found.status == "False" and found.reason == reason

    async def until(self, condition: Callable[[], bool], *, within: float = 30.0) -> None:
        """Wait until a change makes it so; on a timeout print the conditions of all kinds."""
        try:
            async with asyncio.timeout(within):
                while not condition():
                    # Slurm changes without a word to us, so look now and then in any case.
                    await self._change(0.1)
        except TimeoutError:
            raise AssertionError(f"not so after {within} s:\n{self.conditions()}") from None

    async def calm(self, seconds: float = 1.0) -> None:
        """Wait until nothing has changed for so long."""
        while await self._change(seconds):
            pass

    async def _change(self, within: float) -> bool:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._changed.wait()
        return self._changed.is_set()

    def conditions(self) -> str:
        """The conditions of all kinds, for people."""
        return "\n".join(
            f"{resource.kind} {one.metadata.key}: "
            + ", ".join(
                f"{c.type}={c.status} {c.reason} {c.message}" for c in one.status.conditions
            )
            for resource in KINDS
            for one in self.seen[resource.kind]
        )


@asynccontextmanager
async def lab(
    node: Node, *, clusters: int = 1, namespaces: Sequence[str] = (), simulated: bool = True
) -> AsyncGenerator[Lab]:
    """A lab with that many namespaces, or with those; everything in it ends with it.

    Unless kubelets and controllers are `simulated`, the node has real ones.
    """
    async with AsyncExitStack() as stack:
        transport = HttpTransport(from_kubeconfig([node.kubeconfig_path]))
        stack.push_async_callback(transport.close)
        client = Client(transport)
        if node.kubeconfig_path not in _installed:
            await install(client)
            _installed.add(node.kubeconfig_path)
        found: dict[str, Cluster] = {}
        for name in namespaces or [f"test-{uuid.uuid4().hex[:8]}" for _ in range(clusters)]:
            await client.create(NAMESPACES, {"kind": "Namespace", "metadata": {"name": name}})
            stack.push_async_callback(client.delete, NAMESPACES, "", name)
            found[name] = Cluster(name, await stack.enter_async_context(SimulatedSlurmrestd()))
        made = Lab(node, client, found, simulated=simulated)
        task = asyncio.ensure_future(made.manager.run())
        try:
            for cache in made.seen.values():
                await cache.wait_synced()
            yield made
        finally:
            made.manager.stop()
            await task


async def install(client: Client) -> None:
    """Definitions, a Kubernetes node, and the operator's rights, as its manifests give them."""
    for path in sorted((ROOT / "deploy" / "crds").glob("*.yaml")):
        await client.apply(DEFINITIONS, yaml_text.document(path.read_text()))
    for manifest in documents(ROOT / "deploy" / "operator.yaml"):
        if (resource := INSTALLED.get(manifest["kind"])) is not None:
            await client.apply(resource, manifest)
    machine: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": MACHINE}}
    await client.apply(NODES, machine)
    for resource in KINDS:
        await served(client, resource)


_installed: set[Path] = set()


async def served(client: Client, resource: Resource[Any]) -> None:
    """Wait until the API server serves a kind, by the definition's conditions."""
    name = f"{resource.plural}.{resource.group}"
    cache = Cache(client, DEFINITIONS, fields=f"metadata.name={name}", raw=True)
    served = asyncio.Event()

    def look(_: KubeObject | None, new: KubeObject | None) -> None:
        told: list[Json] = ((new and cache.raw(name)) or {}).get("status", {}).get("conditions", [])
        if any(one["type"] == "Established" and one["status"] == "True" for one in told):
            served.set()

    cache.subscribe(look)
    watching = asyncio.ensure_future(cache.run())
    try:
        async with asyncio.timeout(30):
            await served.wait()
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def documents(path: Path) -> list[Json]:
    """The manifests of a file."""
    return [cast("Json", one) for one in yaml_text.documents(path.read_text())]


def quickstart() -> dict[str, Json]:
    """The objects of the example, by kind."""
    return {one["kind"]: one for one in documents(ROOT / "examples" / "quickstart.yaml")}


def made(lab_: Lab, space: str = "") -> dict[str, Json]:
    """All that the operator made in a namespace, without what differs from run to run."""
    space = space or lab_.namespace
    return {
        f"{resource.kind} {one['metadata']['name']}": _plain(one, space)
        for resource in MADE
        for one in lab_.all(resource.kind, space)
    }


def _plain(one: Json, space: str) -> Json:
    kept = {key: value for key, value in one.items() if key != "status"}
    if one["kind"] == "Secret":
        kept["data"] = sorted(kept.get("data", {}))
    text = json.dumps(_stripped(kept), sort_keys=True).replace(space, "NAMESPACE")
    # The name of a revision has a hash of the template with the hashes above.
    text = re.sub(r'("controller-revision-hash": ")[^"]*', r"\1HASH", text)
    return json.loads(re.sub(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b", "HASH", text))


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("Json", value)
        return {
            k: _stripped(v) for k, v in fields.items() if k not in VOLATILE | ASSIGNED | PASSING
        }
    if isinstance(value, list):
        return [_stripped(one) for one in cast("list[Any]", value)]
    return value
