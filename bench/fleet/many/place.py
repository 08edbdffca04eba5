"""The place: one operator, the clusters and a simulated Slurm of each."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bench.fleet.cluster import CLUSTER, NODESET
from bench.fleet.many.cluster import WORKERS, Json, objects, rest_host, space
from bench.fleet.operator import Operator
from bench.fleet.site import TIMEOUT_S, WORKERS_A_MACHINE, apply, prepare
from bench.fleet.slurm import FleetSlurm
from bench.fleet.target import SLINKY
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.nodeset import NODESETS
from penstock.kube import Cache, Client, HttpTransport, from_kubeconfig
from penstock.local.components import Size
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
        self.pods = Cache(client, PODS, labels=SLINKY.workers)
        self.controllers = Cache(client, CONTROLLERS)
        self.nodesets = Cache(client, NODESETS)
        self._numbers = {space(number): number for number in range(len(slurms))}
        self._changed = asyncio.Event()
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

    async def until(self, condition: Callable[[], bool], what: str) -> float:
        """Wait until pods make it so; the moment at which they did (monotonic)."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise TimeoutError(f"not within {TIMEOUT_S:g} s: {what}") from None
        return time.monotonic()

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
        return await self.until(lambda: self.ready(number) == replicas, what) - began

    def calls(self) -> int:
        """Requests to all slurmrestds so far."""
        return sum(len(one.calls) for one in self.slurms)

    async def operator(self) -> Operator:
        """The operator's process, just started."""
        return await Operator.start(SLINKY.api, self.folder)

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        number = self._numbers.get(pod.metadata.namespace) if pod else None
        if pod is None or number is None:
            return
        runs = new is not None and new.ready and not new.metadata.deleting
        if runs and not (old and old.ready):
            self.slurms[number].started(pod)
        elif old is not None and not runs and old.ready and not old.metadata.deleting:
            self.slurms[number].stopping(pod)
        self._changed.set()

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
    node = await asyncio.to_thread(Node(name).up, Size.FLEET, nodes=machines)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        transport = HttpTransport(from_kubeconfig([node.kubeconfig_path]))
        stack.push_async_callback(transport.close)
        slurms = [await stack.enter_async_context(FleetSlurm()) for _ in range(count)]
        names = map(rest_host, range(count))
        await asyncio.to_thread(prepare, node, folder, SLINKY, names)
        client = Client(transport, field_manager="bench")
        made = ManyClusters(node, client, slurms, folder)
        caches = (made.pods, made.controllers, made.nodesets)
        watching = [asyncio.ensure_future(one.run()) for one in caches]
        try:
            for one in caches:
                await one.wait_synced()
            yield made
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
