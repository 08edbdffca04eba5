"""The place: one SlurmCluster with a simulated Slurm, and its operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.fleet.changes import Changes
from bench.fleet.checks.cluster import REST_HOST, slurmcluster
from bench.fleet.checks.slurmctld import ReconfigureLog
from bench.fleet.cluster import NODESET, SPACE, Json
from bench.fleet.operator import Operator
from bench.fleet.site import WORKERS_A_MACHINE, apply, connected, namespace, prepare, watched
from bench.fleet.slurm import FleetSlurm
from bench.fleet.target import NEBIUS
from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.nebius import labels
from penstock.api.nebius.nodeset import NODE_SETS
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.kube import Cache, Client
from penstock.local.config import SIMULATED_LOG
from penstock.local.layout import Layout
from penstock.local.node import Node


class CheckedCluster:
    """The SlurmCluster and its workers."""

    def __init__(self, node: Node, client: Client, slurm: FleetSlurm, folder: Path) -> None:
        self.node = node
        self.client = client
        self.slurm = slurm
        self.folder = folder
        self.pods = Cache(
            client, PODS, namespaces=[SPACE], labels=f"{app_labels.APP_COMPONENT}=nodeset"
        )
        self.clusters = Cache(client, SLURM_CLUSTERS, namespaces=[SPACE])
        self.changes = Changes()
        log = Layout(node.name).logs / Path(SIMULATED_LOG).name
        self.clusters.subscribe(ReconfigureLog(log, slurm.reconfigured).follow)
        self.pods.subscribe(self._pod)

    async def scale(self, replicas: int) -> float:
        """Ask for so many workers, and wait until they are Ready (monotonic seconds)."""
        await self.client.patch(NODE_SETS, SPACE, NODESET, {"spec": {"replicas": replicas}})
        return await self.changes.until(lambda: self._ready() == replicas, f"{replicas} Ready")

    def calls(self) -> int:
        """Requests to slurmrestd so far."""
        return len(self.slurm.calls)

    async def operator(self) -> Operator:
        """The operator's process, just started."""
        return await Operator.start(self.folder, NEBIUS)

    def _ready(self) -> int:
        return sum(one.ready and not one.metadata.deleting for one in self.pods)

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        self.slurm.follow(old, new)
        self.changes.seen()


@asynccontextmanager
async def checked(name: str, workers: int) -> AsyncGenerator[CheckedCluster]:
    """A SlurmCluster without workers, on the built-in node `name` with room for so many."""
    machines = max(10, workers // WORKERS_A_MACHINE)
    async with (
        connected(name, machines) as (node, client, folder),
        FleetSlurm(labels.NODE_SET) as slurm,
    ):
        await asyncio.to_thread(_install, node, folder, slurm.port)
        made = CheckedCluster(node, client, slurm, folder)
        async with watched(made.pods, made.clusters):
            yield made


def _install(node: Node, folder: Path, port: int) -> None:
    prepare(node, folder, [REST_HOST], NEBIUS)
    objects: list[Json] = [namespace(SPACE), *slurmcluster(port)]
    apply(node, objects)
