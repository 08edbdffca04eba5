"""ScheduledUpdate: a new template for some of the workers, which waits for its reservation."""

from __future__ import annotations

import asyncio
import time

from bench.fleet import update
from bench.fleet.cluster import SPACE, WINDOW
from bench.fleet.minute import calm, minute
from bench.fleet.modes import figures
from bench.fleet.modes.figures import Row
from bench.fleet.operator import Operator
from bench.fleet.phase import Phase
from bench.fleet.site import Site
from penstock.base.times import write

PART = "ScheduledUpdate"
LEAD_S = 110
"""From the new template to the begin of its window: for coming to rest, and for a minute of it."""
RESERVED_S = 60.0
UPDATED = "begin of the reservation to all updated"
BARE_UPDATED = "bare client, in quarters"
RATIO = "updated over bare client"
EARLY = "pods replaced before the reservation"
MOST_OUT = "most out at once"
CPU = "operator CPU per pod updated"
WRITES = "writes per pod updated"
CALLS = "Slurm calls per pod updated"
UNITS = {
    **figures.UNITS,
    EARLY: "",
    UPDATED: "s",
    BARE_UPDATED: "s",
    RATIO: "x",
    MOST_OUT: "",
    CPU: "ms",
    WRITES: "",
    CALLS: "",
}


async def measure(place: Site, operator: Operator, size: int) -> tuple[Row, list[str]]:
    """All of it; `size` workers are of the NodeSet that is changed."""
    every = len(place.worker_pods[SPACE].ready)
    before = place.uids(WINDOW)
    begin = int(time.time()) + LEAD_S
    await _declare(place, begin)
    async with asyncio.timeout(RESERVED_S):
        while not place.slurm.slurmctld.reservations:
            await place.slurm.called(1 + len(place.slurm.calls))
    await calm(place, operator)
    waited = await minute(place, operator)
    early = len(before.items() - place.uids(WINDOW).items())
    if time.time() > begin:
        raise TimeoutError(f"a minute of rest was not over within {LEAD_S} s")
    await asyncio.sleep(begin - time.time())
    fewest = every
    phase = await Phase.begin(place, operator)

    def updated() -> bool:
        nonlocal fewest
        ready = len(place.worker_pods[SPACE].ready)
        fewest = min(fewest, ready)
        return place.nodeset_of(WINDOW).status.updated_replicas == size and ready == every

    end = await place.until(updated, "all pods of the window are replaced and Ready")
    await operator.settled()
    used = await phase.end()
    left = len(before.items() & place.uids(WINDOW).items())
    if left:
        raise RuntimeError(f"{left} pods count as updated and are those of before")
    bare = await update.quarters(place, await asyncio.to_thread(place.manifests, WINDOW))
    row = {
        **figures.still(waited),
        EARLY: early,
        UPDATED: end - phase.began,
        BARE_UPDATED: bare[update.BARE_UPDATED],
        RATIO: (end - phase.began) / bare[update.BARE_UPDATED],
        MOST_OUT: every - fewest,
        CPU: 1000 * used.cpu / size,
        WRITES: used.counts.writes / size,
        CALLS: used.slurm / size,
    }
    return row, [f"waited for: {waited.words}", f"update: {used.words}"]


async def _declare(place: Site, begin: int) -> None:
    strategy = {
        "type": "ScheduledUpdate",
        "rollingUpdate": {"maxUnavailable": update.OUT_AT_MOST},
        "scheduledUpdate": {"startTime": write(begin), "duration": "1h"},
    }
    image = f"slurmd:{begin}"
    await place.change({"slurmd": {"image": image}, "updateStrategy": strategy}, WINDOW)
