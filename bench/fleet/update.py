"""A new template for 500 workers, at most a quarter unavailable, beside a bare client.

The bare client ignores Slurm, jobs and budgets: it deletes a quarter, waits until those are
gone, creates them again, waits until they are Ready, and goes on to the next quarter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bench.figures import Result, in_units
from bench.fleet.phase import Phase
from bench.fleet.site import BARE, SPACE, Site, site
from bench.registry import Bench, Settings
from penstock.local.components import Size
from penstock.local.progress import step

WORKERS = 500
QUARTERS = 4
OUT_AT_MOST = f"{100 // QUARTERS}%"
UPDATED = "new template to all updated"
BARE_UPDATED = "bare client, in quarters"
RATIO = "updated over bare client"
MOST_OUT = "most out at once"
CPU = "operator CPU per pod updated"
WRITES = "writes per pod updated"
CALLS = "Slurm calls per pod updated"
UNITS = {
    UPDATED: "s",
    BARE_UPDATED: "s",
    RATIO: "x",
    MOST_OUT: "",
    CPU: "ms",
    WRITES: "",
    CALLS: "",
}

Took = dict[str, float]


def run(given: Settings) -> Result:
    """Measure."""
    return asyncio.run(_run(given))


BENCH = Bench("update", f"a new template for {WORKERS} workers", 2, Size.FLEET, run)


async def _run(given: Settings) -> Result:
    runs: list[Took] = []
    note = ""
    async with site(given.node, WORKERS) as place:
        async with place.operator() as operator:
            await place.strategy("RollingUpdate", OUT_AT_MOST)
            await place.scale(WORKERS)
            await place.until_ready(SPACE, WORKERS)
            await operator.settled()
        for number in range(given.runs):
            with step(f"update {number + 1} of {given.runs}") as shown:
                ours, note = await _ours(place, f"slurmd:{number}")
                theirs = await quarters(place, await asyncio.to_thread(place.manifests))
                runs.append({**ours, **theirs, RATIO: ours[UPDATED] / theirs[BARE_UPDATED]})
                shown.note = f"{ours[UPDATED]:.1f} s, bare client {theirs[BARE_UPDATED]:.1f} s"
    return Result(in_units(UNITS, runs), note)


async def _ours(place: Site, image: str) -> tuple[Took, str]:
    fewest = WORKERS
    async with place.operator() as operator:
        await operator.settled()
        phase = await Phase.begin(place, operator)
        await place.image(image)

        def updated() -> bool:
            nonlocal fewest
            status = place.nodeset.status
            fewest = min(fewest, len(place.worker_pods[SPACE].ready))
            told = status.observed_generation == place.nodeset.metadata.generation
            return told and status.updated_replicas == WORKERS == len(
                place.worker_pods[SPACE].ready
            )

        end = await place.until(updated, "all pods have the new template and are Ready")
        used = await phase.end()
    took = {
        UPDATED: end - phase.began,
        MOST_OUT: WORKERS - fewest,
        CPU: 1000 * used.cpu / WORKERS,
        WRITES: used.counts.writes / WORKERS,
        CALLS: used.slurm / WORKERS,
    }
    return took, f"Update: {used.words}"


async def quarters(place: Site, pods: Sequence[bytes]) -> Took:
    """The bare client replaces these pods; its own starts are not counted, one for each step."""
    count, size = len(pods), len(pods) // QUARTERS
    async with asyncio.TaskGroup() as group:
        group.create_task(place.bare("create", pods))
        await place.until_ready(BARE, count)
    taken = 0.0
    for first in range(0, count, size):
        quarter = pods[first : first + size]
        for verb, left in (("delete", count - len(quarter)), ("create", count)):
            async with asyncio.TaskGroup() as group:
                doing = group.create_task(place.bare(verb, quarter))
                done = await _there(place, left)
            taken += done - doing.result()["began"]
    async with asyncio.TaskGroup() as group:
        group.create_task(place.bare("delete", pods))
        await place.until_gone(BARE)
    return {BARE_UPDATED: taken}


async def _there(place: Site, count: int) -> float:
    aggregates = place.worker_pods[BARE]
    return await place.until(
        lambda: len(aggregates.there) == len(aggregates.ready) == count,
        f"{count} are there and Ready",
    )
