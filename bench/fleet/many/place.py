"""The place: one operator, the clusters and a simulated Slurm of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bench.fleet.changes import Changes
from bench.fleet.cluster import CLUSTER, NODESET, Json, rest_host
from bench.fleet.many.cluster import WORKERS, objects, space
from bench.fleet.operator import Operator
from bench.fleet.site import WORKERS as WORKER_PODS
from bench.fleet.site import WORKERS_A_MACHINE, apply, connected, prepare, watched
from bench.fleet.slurm import FleetSlurm
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.nodeset import NODESETS
from penstock.kube import Cache, Client
from penstock.local.node import Node

CHUNK = 20
"""Clusters that one kubectl creates."""


class ManyClusters:
    """The clusters, by their number."""

    def __init__(self, node: Node, client: Client, slurms: list[FleetSlurm], folder: Path) -> None:
        self.node = node
        self.client = client
        self.slurms = slurms
        self.folder = folder
        self.pods = Cache(client, PODS, labels=WORKER_PODS)
        self.controllers = Cache(client, CONTROLLERS)
        self._numbers = {space(number): number for number in range(len(slurms))}
        self.changes = Changes()
        self._taken: dict[str, str] = {}
        self._tasks = set[asyncio.Task[object]]()
        self.pods.subscribe(self._pod)
        self.controllers.subscribe(self._controller)

    async def create(self) -> float:
        """Create all of them; seconds that it took."""
        began = time.monotonic()
        for first in range(0, len(self.slurms), CHUNK):
            numbers = range(first, min(first + CHUNK, len(self.slurms)))
            some = [one for n in numbers for one in objects(n, self.slurms[n].port)]
            await asyncio.to_thread(apply, self.node, some)
        return time.monotonic() - began

    def ready(self, number: int | None = None) -> int:
        """Ready workers of a cluster, or of all."""
        wanted = None if number is None else space(number)
        return sum(
            one.ready and not one.metadata.deleting
            for one in self.pods
            if wanted is None or one.metadata.namespace == wanted
        )

    async def scale(self, number: int, replicas: int) -> float:
        """Seconds from asking for so many workers of a cluster until they are Ready."""
        began = time.monotonic()
        body: Json = {"spec": {"replicas": replicas}}
        await self.client.patch(NODESETS, space(number), NODESET, body)
        what = f"{replicas} Ready in {space(number)}"
        return await self.changes.until(lambda: self.ready(number) == replicas, what) - began

    def calls(self) -> int:
        """Requests to all slurmrestds so far."""
        return sum(len(one.calls) for one in self.slurms)

    async def operator(self) -> Operator:
        """The operator's process, just started."""
        return await Operator.start(self.folder)

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        number = self._numbers.get(pod.metadata.namespace) if pod else None
        if number is not None:
            self.slurms[number].follow(old, new)
            self.changes.seen()

    def _controller(self, _: Controller | None, new: Controller | None) -> None:
        """Report that slurmctld runs with its configuration, as soon as that is written."""
        if new is None:
            return
        wanted, key = new.status.config_hash, new.metadata.namespace
        if not wanted or wanted == new.status.effective_config_hash:
            return
        if self._taken.get(key) != wanted:
            self._taken[key] = wanted
            self.slurms[self._numbers[key]].reconfigured()
        body: Json = {"status": {"effectiveConfigHash": wanted}}
        task = asyncio.create_task(
            self.client.patch(CONTROLLERS, key, CLUSTER, body, subresource="status")
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@asynccontextmanager
async def many(name: str, count: int) -> AsyncGenerator[ManyClusters]:
    """So many clusters, not created yet, on the built-in node `name` of size `fleet`."""
    machines = max(10, count * WORKERS // WORKERS_A_MACHINE)
    async with connected(name, machines) as (node, client, folder), AsyncExitStack() as stack:
        slurms = [await stack.enter_async_context(FleetSlurm()) for _ in range(count)]
        await asyncio.to_thread(prepare, node, folder, [rest_host(space(n)) for n in range(count)])
        made = ManyClusters(node, client, slurms, folder)
        async with watched(made.pods, made.controllers):
            yield made
