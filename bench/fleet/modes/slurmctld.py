"""What simulated pods cannot say: that slurmctld runs with what it was given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from bench.fleet.cluster import CLUSTER, SPACE
from bench.fleet.site import Json, Site
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.kube import Cache


@asynccontextmanager
async def following(place: Site) -> AsyncGenerator[None]:
    """Until the block ends, slurmctld takes over each configuration as soon as it is written.

    It says so in the status, and each slurmd starts anew, as a reconfigure makes it.
    """
    changed = asyncio.Event()
    cache = Cache(place.client, CONTROLLERS, namespaces=[SPACE])
    cache.subscribe(lambda _, __: changed.set())
    tasks = [asyncio.create_task(cache.run()), asyncio.create_task(_follow(place, cache, changed))]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _follow(place: Site, cache: Cache[Controller], changed: asyncio.Event) -> None:
    last = ""
    while await changed.wait():
        changed.clear()
        found = cache.get(f"{SPACE}/{CLUSTER}")
        wanted = found.status.config_hash if found is not None else ""
        if found is None or not wanted or found.status.effective_config_hash == wanted:
            continue
        if wanted != last:
            last = wanted
            place.slurm.reconfigured()
        body: Json = {"status": {"effectiveConfigHash": wanted}}
        await place.client.patch(CONTROLLERS, SPACE, CLUSTER, body, subresource="status")
