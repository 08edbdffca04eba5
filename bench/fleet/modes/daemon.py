"""DaemonSet mode: a worker on each of a thousand machines, beside a bare client."""

from __future__ import annotations

import asyncio

from bench.fleet import scale
from bench.fleet.cluster import DAEMON, NOWHERE, PLACES, SPACE
from bench.fleet.minute import calm, minute
from bench.fleet.modes import figures
from bench.fleet.modes.figures import Row
from bench.fleet.operator import Operator
from bench.fleet.phase import Phase
from bench.fleet.site import Json, Site
from penstock.api.kubernetes.kinds import NODES
from penstock.local.objects import fleet_name

PART = "DaemonSet mode"
UP = "0 to all ready"
BARE_UP = "bare client, 0 to all ready"
UP_RATIO = "ready over bare client"
CPU_MADE = "operator CPU per pod made"
WRITES = "writes per pod made"
CALLS = "Slurm calls per pod made"
DOWN = "all to 0 gone"
BARE_DOWN = "bare client, all to 0 gone"
DOWN_RATIO = "gone over bare client"
UNITS = {
    UP: "s",
    BARE_UP: "s",
    UP_RATIO: "x",
    CPU_MADE: "ms",
    WRITES: "",
    CALLS: "",
    DOWN: "s",
    BARE_DOWN: "s",
    DOWN_RATIO: "x",
    **figures.UNITS,
}
IN_FLIGHT = 32


async def places(place: Site, count: int) -> None:
    """Label so many Kubernetes nodes for workers of the NodeSet."""
    body: Json = {"metadata": {"labels": PLACES}}
    room = asyncio.Semaphore(IN_FLIGHT)

    async def label(index: int) -> None:
        async with room:
            await place.client.patch(NODES, "", fleet_name(index), body)

    async with asyncio.TaskGroup() as group:
        for index in range(count):
            group.create_task(label(index))


async def measure(place: Site, operator: Operator, size: int) -> tuple[Row, list[str]]:
    """All of it; `size` machines have the label, and the cluster has no workers."""
    await operator.settled()
    up = await Phase.begin(place, operator)
    await _select(place, PLACES)
    ready = await place.until_ready(SPACE, size)
    # The status of so many Slurm nodes is written a while after the last pod is Ready.
    await calm(place, operator)
    grown = await up.end()
    used = await minute(place, operator)
    pods = await asyncio.to_thread(place.manifests, DAEMON)
    down = await Phase.begin(place, operator)
    await _select(place, NOWHERE)
    gone = await place.until_gone(SPACE)
    await operator.settled()
    shrunk = await down.end()
    bare = await scale.bare(place, pods)
    row = {
        UP: ready - up.began,
        BARE_UP: bare[scale.BARE_UP],
        UP_RATIO: (ready - up.began) / bare[scale.BARE_UP],
        CPU_MADE: 1000 * grown.cpu / size,
        WRITES: grown.counts.writes / size,
        CALLS: grown.slurm / size,
        DOWN: gone - down.began,
        BARE_DOWN: bare[scale.BARE_DOWN],
        DOWN_RATIO: (gone - down.began) / bare[scale.BARE_DOWN],
        **figures.still(used),
    }
    return row, [f"up: {grown.words}", f"settled: {used.words}", f"down: {shrunk.words}"]


async def _select(place: Site, labels: dict[str, str]) -> None:
    await place.change({"template": {"spec": {"nodeSelector": labels}}}, DAEMON)
