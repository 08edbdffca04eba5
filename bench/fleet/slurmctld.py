"""Reports in the place of simulated pods that slurmctld runs with its configuration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from bench.fleet.cluster import CLUSTER, SPACE, Json
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.kube import Cache, Client

TOLD_S = 60.0


class _Slurmctld:
    def __init__(self, client: Client, reconfigured: Callable[[], None]) -> None:
        self.client = client
        self.controllers = Cache(client, CONTROLLERS, namespaces=[SPACE])
        self.reconfigured = reconfigured
        self.told = asyncio.Event()
        self._changed = asyncio.Event()
        self.controllers.subscribe(lambda _, __: self._changed.set())

    async def follow(self) -> None:
        """Take over each configuration as soon as it is written."""
        last = ""
        while await self._changed.wait():
            self._changed.clear()
            status = self._found().status
            wanted = status.config_hash
            if not wanted:
                continue
            if status.effective_config_hash == wanted:
                self.told.set()
                continue
            if wanted != last:
                last = wanted
                self.reconfigured()
            body: Json = {"status": {"effectiveConfigHash": wanted}}
            await self.client.patch(CONTROLLERS, SPACE, CLUSTER, body, subresource="status")

    def _found(self) -> Controller:
        return self.controllers.get(f"{SPACE}/{CLUSTER}") or Controller()


@asynccontextmanager
async def following(
    client: Client, reconfigured: Callable[[], None]
) -> AsyncGenerator[Callable[[], Awaitable[object]]]:
    """Until the block ends, slurmctld takes over each configuration as soon as it is written.

    It reports that in the status, and `reconfigured` restarts each slurmd, as a reconfigure does.
    The yielded function waits for the first report, and raises TimeoutError.
    """
    slurmctld = _Slurmctld(client, reconfigured)
    tasks = [
        asyncio.create_task(slurmctld.controllers.run()),
        asyncio.create_task(slurmctld.follow()),
    ]
    try:
        yield lambda: asyncio.wait_for(slurmctld.told.wait(), TOLD_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
