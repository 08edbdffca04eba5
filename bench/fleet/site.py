"""The place where fleets are measured: a built-in node of size `fleet`, one cluster, its Slurm."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bench.fleet.changes import Changes
from bench.fleet.cluster import CLUSTER, NODESET, SPACE, Cluster, plain, rest_host
from bench.fleet.operator import HOSTS, KUBECONFIG, Operator
from bench.fleet.slurm import FleetSlurm
from bench.fleet.slurmctld import following
from bench.fleet.target import SLINKY, Target
from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.slinky import names
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.base import yaml_text
from penstock.kube import Cache, Client, HttpTransport, from_kubeconfig
from penstock.local import install
from penstock.local.components import Size
from penstock.local.node import Node

BARE = "bare"
WORKERS = f"{app_labels.APP_NAME}=slurmd"
WORKERS_A_MACHINE = 10
"""So that simulating the machines does not take what is to be measured."""
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", KubeObject, namespaced=False)

Json = dict[str, Any]


@dataclass
class WorkerPods:
    """The worker pods of one namespace: names of those there are, and of those Ready."""

    there: set[str] = field(default_factory=set[str])
    ready: set[str] = field(default_factory=set[str])


class Site:
    """One cluster without workers, and an eye on its pods."""

    def __init__(self, node: Node, client: Client, slurm: FleetSlurm, folder: Path) -> None:
        self.node = node
        self.client = client
        self.slurm = slurm
        self.folder = folder
        self.worker_pods = {SPACE: WorkerPods(), BARE: WorkerPods()}
        self.pods = Cache(client, PODS, labels=WORKERS)
        self.nodesets = Cache(client, NODESETS, namespaces=[SPACE])
        self._changes = Changes()
        self.pods.subscribe(self._pod)
        self.nodesets.subscribe(lambda _, __: self._changes.seen())

    @property
    def nodeset(self) -> NodeSet:
        """The cluster's NodeSet."""
        return self.nodeset_of(NODESET)

    def nodeset_of(self, name: str) -> NodeSet:
        """One of several."""
        found = self.nodesets.get(f"{SPACE}/{name}")
        if found is None:
            raise RuntimeError(f"NodeSet {name} is gone")
        return found

    def uids(self, nodeset: str = "") -> dict[str, str]:
        """Uids of the workers by name, of one NodeSet or of all."""
        every = (pod.metadata for pod in self.pods if pod.metadata.namespace == SPACE)
        return {
            one.name: one.uid
            for one in every
            if not nodeset or one.labels.get(app_labels.APP_INSTANCE) == nodeset
        }

    @asynccontextmanager
    async def operator(self) -> AsyncGenerator[Operator]:
        """Run the operator until the block ends; it is ready, not yet settled.

        Raises an ExceptionGroup when it ends before that.
        """
        async with (
            following(self.client, self.slurm.reconfigured) as told,
            await self.start() as operator,
            asyncio.TaskGroup() as group,
        ):
            watched = group.create_task(operator.ended())
            await operator.ready()
            await told()
            yield operator
            watched.cancel()

    async def start(self) -> Operator:
        """The operator's process, just started."""
        return await Operator.start(self.folder)

    def calls(self) -> int:
        """Requests to slurmrestd so far."""
        return len(self.slurm.calls)

    async def scale(self, replicas: int) -> None:
        """Ask for so many workers."""
        await self.change({"replicas": replicas})

    async def strategy(self, kind: str, out: str) -> None:
        """How pods get a new template, and how many of them may be unavailable for it."""
        rolling = {"maxUnavailable": out}
        await self.change({"updateStrategy": {"type": kind, "rollingUpdate": rolling}})

    async def image(self, image: str) -> None:
        """Another template for the workers."""
        await self.change({"slurmd": {"image": image}})

    async def change(self, spec: Json, name: str = NODESET) -> None:
        """Ask for something else of a NodeSet. Returns when the change is seen here too."""
        changed = await self.client.patch(NODESETS, SPACE, name, {"spec": spec})
        number = changed.metadata.generation
        await self.until(
            lambda: self.nodeset_of(name).metadata.generation >= number, "the change is seen"
        )

    async def until(self, condition: Callable[[], bool], what: str) -> float:
        """Wait until pods or the NodeSet make it so; the moment at which they did (monotonic)."""
        try:
            return await self._changes.until(condition, what)
        except TimeoutError as error:
            counts = {k: (len(c.there), len(c.ready)) for k, c in self.worker_pods.items()}
            raise TimeoutError(f"{error}; pods there and ready: {counts}") from None

    async def until_ready(self, space: str, count: int) -> float:
        """Wait for so many Ready workers."""
        aggregates = self.worker_pods[space]
        return await self.until(lambda: len(aggregates.ready) == count, f"{count} Ready in {space}")

    async def until_gone(self, space: str) -> float:
        """Wait until there is no worker pod."""
        return await self.until(lambda: not self.worker_pods[space].there, f"no pods in {space}")

    def manifests(self, nodeset: str = NODESET) -> list[bytes]:
        """The workers of a NodeSet as JSON lines, to be created again by another client.

        What they share is made there now: Kubernetes' controllers have the same work with both.
        """
        shared = (f"service/{names.worker_service(CLUSTER)}", f"pdb/{names.worker_budget(CLUSTER)}")
        said = self.node.kubectl("get", *shared, "-n", SPACE, "-o", "json")
        apply(self.node, [_renewed_shared(one) for one in json.loads(said)["items"]])
        selector = f"{WORKERS},{app_labels.APP_INSTANCE}={nodeset}"
        text = self.node.kubectl("get", "pods", "-n", SPACE, "-l", selector, "-o", "json")
        return [json.dumps(renewed(pod)).encode() for pod in json.loads(text)["items"]]

    async def bare(self, verb: str, lines: Iterable[bytes]) -> Json:
        """Let the bare client do all of it; what it used."""
        file = self.folder / "pods.jsonl"
        file.write_bytes(b"\n".join(lines))
        process = await self.bare_process(verb, str(file))
        said, _ = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"the bare client ended with {process.returncode}")
        return json.loads(said)

    async def bare_process(self, *arguments: str) -> asyncio.subprocess.Process:
        """The bare client, started."""
        verb, *rest = arguments
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.fleet.bare", str(self.node.kubeconfig_path), verb),
            *rest,
            stdout=asyncio.subprocess.PIPE,
        )

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        aggregates = self.worker_pods.get(pod.metadata.namespace) if pod else None
        if pod is None or aggregates is None:
            return
        name = pod.metadata.name
        if new is None:
            aggregates.there.discard(name)
        else:
            aggregates.there.add(name)
        runs = new is not None and new.ready and not new.metadata.deleting
        (aggregates.ready.add if runs else aggregates.ready.discard)(name)
        if pod.metadata.namespace == SPACE:
            self.slurm.follow(old, new)
        self._changes.seen()


@asynccontextmanager
async def site(
    name: str, workers: int, *, cluster: Cluster = plain, machines: int = 0
) -> AsyncGenerator[Site]:
    """The site, on the built-in node `name` with simulated Kubernetes nodes for so many workers.

    There are at least `machines` of them. A `cluster` of another shape is created once nothing is
    left of any other.
    """
    machines = max(10, machines, workers // WORKERS_A_MACHINE)
    async with connected(name, machines) as (node, client, folder), FleetSlurm() as slurm:
        await asyncio.to_thread(_install, node, folder, slurm.port, cluster)
        made = Site(node, client, slurm, folder)
        async with watched(made.pods, made.nodesets):
            yield made


@asynccontextmanager
async def connected(name: str, machines: int) -> AsyncGenerator[tuple[Node, Client, Path]]:
    """The built-in node with so many simulated ones, its client, and a folder for the operator."""
    node = await asyncio.to_thread(Node(name).up, Size.FLEET, nodes=machines)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        transport = HttpTransport(from_kubeconfig([node.kubeconfig_path]))
        try:
            yield node, Client(transport, field_manager="bench"), Path(folder)
        finally:
            await transport.close()


@asynccontextmanager
async def watched(*caches: Cache[Any]) -> AsyncGenerator[None]:
    """Until the block ends, these caches follow; at its begin they are filled."""
    watching = [asyncio.ensure_future(one.run()) for one in caches]
    try:
        for one in caches:
            await one.wait_synced()
        yield
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


def prepare(node: Node, folder: Path, hosts: Iterable[str], target: Target = SLINKY) -> None:
    """Kinds, the operator's rights, an account's kubeconfig for it, and hosts of slurmrestds."""
    kinds = install.documents("deploy/crds")
    apply(node, kinds)
    established = ("wait", "--for=condition=Established", "--timeout=60s")
    node.kubectl(*established, *(f"crd/{one['metadata']['name']}" for one in kinds))
    rights = install.documents(target.manifest)
    # The operator runs outside of the cluster here: nothing would answer for its webhooks.
    left = ("Deployment", *(one["kind"] for one in rights if "webhooks" in one))
    apply(node, [one for one in rights if one["kind"] not in left])
    duration = ("-n", target.namespace, "--duration=48h")
    token = node.kubectl("create", "token", target.account, *duration).strip()
    config: Json = yaml.safe_load(node.kubeconfig_path.read_text())
    for user in config["users"]:
        user["user"] = {"token": token}
    (folder / KUBECONFIG).write_text(yaml.safe_dump(config))
    lines = (f"127.0.0.1 {host}\n" for host in hosts)
    (folder / HOSTS).write_text(f"{Path('/etc/hosts').read_text()}\n{''.join(lines)}")


def _install(node: Node, folder: Path, port: int, cluster: Cluster) -> None:
    """All that the operator needs, and the cluster."""
    prepare(node, folder, [rest_host(SPACE)])
    if cluster is not plain:
        _clear(node)
    apply(node, [namespace(SPACE), namespace(BARE)])
    apply(node, cluster(port))


def _clear(node: Node) -> None:
    """Take away what another bench left; no operator runs that would ask Slurm about it."""
    there = node.kubectl("get", "nodesets", "-n", SPACE, "-o", "name", "--ignore-not-found")
    for one in there.split():
        free = ("--type=merge", "-p", json.dumps({"metadata": {"finalizers": None}}))
        node.kubectl("patch", one, "-n", SPACE, *free)
    gone = ("--ignore-not-found", "--timeout=600s")
    node.kubectl("delete", "namespace", SPACE, BARE, *gone)


def apply(node: Node, objects: list[Json]) -> None:
    """Apply objects, whoever owns their fields."""
    text = yaml_text.dumped(objects)
    node.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def namespace(name: str) -> Json:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _renewed_shared(one: Json) -> Json:
    spec = {key: value for key, value in one["spec"].items() if key != "clusterIPs"}
    meta = {"name": one["metadata"]["name"], "namespace": BARE}
    return {"apiVersion": one["apiVersion"], "kind": one["kind"], "metadata": meta, "spec": spec}


def renewed(pod: Json) -> Json:
    """A pod as it was asked for, in the other namespace and without an owner."""
    meta, spec = pod["metadata"], {**pod["spec"]}
    for given in ("nodeName", "serviceAccount", "serviceAccountName", "tolerations", "priority"):
        spec.pop(given, None)
    kept = {key: meta[key] for key in ("name", "labels", "annotations") if key in meta}
    kept["namespace"] = BARE
    return {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec}
