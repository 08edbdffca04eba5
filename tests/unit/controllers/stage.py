"""Caches that a test fills by hand, a simulated API server, and a Slurm over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.nodeset.actor import Actor
from penstock.controllers.observed.cluster_state import PartitionOverrides, RejectedFiles
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.settings import Settings
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.controllers.slinky.nodeset import worker_caches
from penstock.controllers.slinky.worker_source import NodeSetSource
from penstock.controllers.workers.source import WorkerSource
from penstock.kube import Cache, Client, Manager, Recorder
from penstock.kube.cache.store import Entry
from penstock.kube.runtime.state import StateByUid
from penstock.model.worker_set import WorkerSet
from penstock.render.slinky.inputs import ClusterInputs
from penstock.simulation.slurm.slurmctld import SimulatedSlurmctld
from penstock.simulation.slurm.slurmrestd import SimulatedSlurmrestd
from penstock.slurm.mirror.accounting_registration import RegistrationMirror
from penstock.slurm.mirror.nodes_and_jobs import Mirror
from penstock.slurm.mirror.partitions import PartitionMirror
from penstock.slurm.mirror.reservations import ReservationMirror
from penstock.slurm.rest.client import Slurmrestd
from penstock.translate.slinky.worker_set import worker_set
from unit.kube.fake_api import FakeApi

PODS_PATH = "/api/v1/namespaces/slurm/pods"


def clusters_of(manager: Manager, settings: Settings | None = None) -> SlinkyClusters:
    """Of empty caches; nothing watches."""
    caches, settings = SlinkyCaches(CacheStore(manager)), settings or Settings()
    return SlinkyClusters(
        caches,
        SecretReader(caches.secrets),
        settings.images,
        settings.cluster_domain,
        StateByUid(caches.controllers, PartitionOverrides),
        StateByUid(caches.controllers, RejectedFiles),
    )


def new_clusters() -> SlinkyClusters:
    """Of empty caches, with an API server that is never asked."""
    return clusters_of(Manager(Client(FakeApi())))


def put(cache: Cache[Any], *objects: KubeObject) -> None:
    """Let a cache show these."""
    for one in objects:
        cache._store.put(Entry(one))


def put_raw(cache: Cache[Any], body: Json) -> None:
    """Let a cache that keeps JSON show an object."""
    cache._store.put(Entry(msgspec.convert(body, cache.resource.type), msgspec.json.encode(body)))


def drop(cache: Cache[Any], obj: KubeObject) -> None:
    """Let a cache show it no more."""
    cache._store.remove(obj)


def set_absent(cache: Cache[Any], why: str) -> None:
    """Let a cluster lack the kind of a cache; with an empty text it has it."""
    for part in cache._parts.values():
        part.missing = why


class Source(NodeSetSource):
    """The workers of a NodeSet, with the cluster that is given."""

    def __init__(
        self, nodeset: NodeSet, caches: SlinkyCaches, cluster: ClusterInputs | None
    ) -> None:
        self._nodeset = nodeset
        self._caches = caches
        self._secrets = SecretReader(caches.secrets)
        self._cluster = cluster or Finding(None, ObjectReason.CONTROLLER_NOT_FOUND)
        self.object = nodeset
        self.resource = NODESETS
        self.workers = worker_set(nodeset)
        self.problems = []
        self.is_cluster_ready = cluster is not None


@dataclass
class Stage:
    """An actor with all that it acts on."""

    api: FakeApi
    caches: SlinkyCaches
    rest: SimulatedSlurmrestd
    link: SlurmConnection
    actor: Actor
    nodeset: NodeSet

    @property
    def workers(self) -> WorkerSet:
        return worker_set(self.nodeset)

    @property
    def slurm(self) -> SimulatedSlurmctld:
        return self.rest.slurmctld

    def place(self, pod: Pod) -> None:
        """The pod is in the API server and in the cache, in the same version."""
        path = f"{PODS_PATH}/{pod.metadata.name}"
        plain: Json = msgspec.to_builtins(pod)
        self.api.put(path, **{key: plain[key] for key in ("metadata", "spec", "status")})
        self.api.objects[path]["metadata"]["resourceVersion"] = pod.metadata.resource_version
        put(self.caches.pods, pod)

    @property
    def pods(self) -> list[str]:
        """Names of the pods that the API server has."""
        return sorted(path.rpartition("/")[2] for path in self.api.objects if PODS_PATH in path)

    def source(self, cluster: ClusterInputs | None = None) -> WorkerSource:
        return Source(self.nodeset, self.caches, cluster)

    async def act(self, *actions: Any, abandoned: bool = False, link: bool = True) -> bool:
        connection = self.link if link else None
        return await self.actor.act(self.source(), actions, connection, is_orphaned=abandoned)

    def posts(self) -> list[str]:
        """What was asked of Slurm beyond reading."""
        return [call for call in self.rest.calls if not call.startswith("GET")]

    def deletes(self) -> list[Json]:
        """Preconditions of the deletes that were sent."""
        bodies = [one.body for one in self.api.requests if one.method == "DELETE"]
        return [msgspec.json.decode(body)["preconditions"] for body in bodies]


@asynccontextmanager
async def stage(nodeset: NodeSet, *nodes: str) -> AsyncGenerator[Stage]:
    """A stage on which Slurm knows these nodes, idle, and has been asked once."""
    api = FakeApi()
    client = Client(api)
    caches = SlinkyCaches(CacheStore(Manager(client)))
    events = Events(Recorder(client, "test", "test"), NODESETS)
    put(caches.nodesets, nodeset)
    actor = Actor(client, caches.nodesets, worker_caches(caches), events)
    async with SimulatedSlurmrestd() as rest:
        for name in nodes:
            rest.slurmctld.register(name)
        link = SlurmConnection(
            "uid",
            Mirror(),
            PartitionMirror(lambda: None),
            ReservationMirror(lambda: None),
            RegistrationMirror(lambda: None),
            Slurmrestd(rest.url, lambda: "token", timeout_s=2.0),
        )
        link.mirror.endpoint(link.client)
        running = asyncio.ensure_future(link.mirror.run())
        await asyncio.sleep(0)
        try:
            await link.mirror.poll()
            yield Stage(api, caches, rest, link, actor, nodeset)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
