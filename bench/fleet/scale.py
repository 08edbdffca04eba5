"""0 to 1000 workers and back, beside a bare client that makes and deletes the same pods."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from bench.figures import Result, in_units
from bench.fleet.phase import Phase
from bench.fleet.site import BARE, SPACE, Site, site
from bench.registry import Bench, Settings
from penstock.local.components import Size
from penstock.local.progress import step

WORKERS = 1000
UP = "0 to 1000 ready"
BARE_UP = "bare client: 0 to 1000 ready"
UP_RATIO = "ready over bare client"
REPORTED = "0 to 1000 told in status"
UP_SETTLED = "0 to 1000 settled"
DOWN = "1000 to 0 gone"
BARE_DOWN = "bare client: 1000 to 0 gone"
DOWN_RATIO = "gone over bare client"
DOWN_SETTLED = "1000 to 0 settled"
CPU_MADE = "operator CPU per pod made"
BARE_MADE = "bare client CPU per pod made"
CPU_TAKEN = "operator CPU per pod taken down"
WRITES = "writes per pod made"
CALLS = "Slurm calls per pod made"
MEMORY = "operator peak memory"
UNITS = {
    UP: "s",
    BARE_UP: "s",
    UP_RATIO: "x",
    REPORTED: "s",
    UP_SETTLED: "s",
    DOWN: "s",
    BARE_DOWN: "s",
    DOWN_RATIO: "x",
    DOWN_SETTLED: "s",
    CPU_MADE: "ms",
    BARE_MADE: "ms",
    CPU_TAKEN: "ms",
    WRITES: "",
    CALLS: "",
    MEMORY: "MiB",
}

Took = dict[str, float]


def run(given: Settings) -> Result:
    """Measure."""
    return asyncio.run(_run(given))


BENCH = Bench("scale", "0 to 1000 simulated workers and back", 2, Size.FLEET, run)


async def _run(given: Settings) -> Result:
    runs: list[Took] = []
    notes: list[str] = []
    async with site(given.node, WORKERS) as place:
        with step("once, unmeasured"):
            # An API server that has just started is slower, whoever comes first.
            pods = (await _ours(place))[2]
            await bare(place, pods)
        for number in range(given.runs):
            with step(f"scale {number + 1} of {given.runs}") as shown:
                ours, note, pods = await _ours(place)
                theirs = await bare(place, pods)
                runs.append({**ours, **theirs, **_ratios(ours, theirs)})
                notes.append(note)
                shown.note = f"{runs[-1][UP]:.1f} s, bare client {runs[-1][BARE_UP]:.1f} s"
    return Result(in_units(UNITS, runs), notes[-1])


def _ratios(ours: Mapping[str, float], bare: Mapping[str, float]) -> Took:
    return {UP_RATIO: ours[UP] / bare[BARE_UP], DOWN_RATIO: ours[DOWN] / bare[BARE_DOWN]}


async def _ours(place: Site) -> tuple[Took, str, list[bytes]]:
    async with place.operator() as operator:
        await operator.settled()
        up = await Phase.begin(place, operator)
        await place.scale(WORKERS)
        ready = await place.until_ready(SPACE, WORKERS)
        status = await place.until(
            lambda: _reports(place, WORKERS), "the NodeSet's status shows it"
        )
        settled = await operator.settled()
        grown = await up.end()
        took = {
            UP: ready - up.began,
            REPORTED: status - up.began,
            UP_SETTLED: settled - up.began,
            CPU_MADE: 1000 * grown.cpu / WORKERS,
            WRITES: grown.counts.writes / WORKERS,
            CALLS: grown.slurm / WORKERS,
        }
        note = f"Up: {grown.words}"
        pods = await asyncio.to_thread(place.manifests)
        down = await Phase.begin(place, operator)
        await place.scale(0)
        gone = await place.until_gone(SPACE)
        settled = await operator.settled()
        shrunk = await down.end()
        took |= {
            DOWN: gone - down.began,
            DOWN_SETTLED: settled - down.began,
            CPU_TAKEN: 1000 * shrunk.cpu / WORKERS,
            MEMORY: operator.peak,
        }
    return took, f"{note}\nDown: {shrunk.words}", pods


def _reports(place: Site, count: int) -> bool:
    status = place.nodeset.status
    ready = next((c for c in status.conditions if c.type == "Ready"), None)
    return status.ready_replicas == count and ready is not None and ready.status == "True"


async def bare(place: Site, pods: list[bytes]) -> Took:
    """The bare client makes and deletes these pods; its own start and end are not counted."""
    async with asyncio.TaskGroup() as group:
        creating = group.create_task(place.bare("create", pods))
        ready = await place.until_ready(BARE, len(pods))
    async with asyncio.TaskGroup() as group:
        deleting = group.create_task(place.bare("delete", pods))
        gone = await place.until_gone(BARE)
    created, deleted = creating.result(), deleting.result()
    return {
        BARE_UP: ready - created["began"],
        BARE_DOWN: gone - deleted["began"],
        BARE_MADE: 1000 * created["cpu"] / len(pods),
    }
