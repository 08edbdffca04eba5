"""All parts, one after the other: the bench `modes`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from bench.figures import Figure, Result
from bench.fleet import cluster
from bench.fleet.cluster import NODESET, SPACE, WINDOW
from bench.fleet.modes import adoption, daemon, keys, window
from bench.fleet.modes.figures import Row, named
from bench.fleet.site import Site, site
from bench.registry import Bench, Settings
from penstock.local.components import Size
from penstock.local.progress import step

WORKERS = 1000
IN_WINDOW = 5
"""One of so many workers gets a new template in a reservation."""
PARTS: Mapping[str, Mapping[str, str]] = {
    one.PART: one.UNITS for one in (window, keys, daemon, adoption)
}

Rows = dict[str, Row]


def run(given: Settings) -> Result:
    """Measure."""
    return asyncio.run(_run(given))


BENCH = Bench(
    "modes",
    f"{WORKERS} workers in DaemonSet mode, in a reservation, with a new key, taken over",
    1,
    Size.FLEET,
    run,
)


async def _run(given: Settings) -> Result:
    runs: list[Rows] = []
    notes: list[str] = []
    for _ in range(given.runs):
        rows: Rows = {}
        async with site(given.node, WORKERS, cluster=cluster.modes, machines=WORKERS) as place:
            notes = await _ours(place, rows)
        async with site(given.node, WORKERS, cluster=_left) as place:
            with step(f"{WORKERS} workers of slurm-operator"):
                await adoption.leave(place, WORKERS)
            with step(adoption.PART):
                rows[adoption.PART], said = await adoption.measure(place, WORKERS)
                notes += _notes(adoption.PART, said)
        runs.append(rows)
    return Result(gathered(runs), "\n".join(notes))


def gathered(runs: list[Rows]) -> tuple[Figure, ...]:
    """Each figure of each part, with its values in all runs."""
    return tuple(
        Figure(named(part, what), unit, tuple(rows[part][what] for rows in runs))
        for part, units in PARTS.items()
        for what, unit in units.items()
    )


async def _ours(place: Site, rows: Rows) -> list[str]:
    """The parts in a cluster of our own, which has an Accounting from the start."""
    notes: list[str] = []
    await daemon.places(place, WORKERS)
    async with place.operator() as operator:
        with step(f"{WORKERS} workers"):
            some = WORKERS // IN_WINDOW
            await place.change({"replicas": some}, WINDOW)
            await place.change({"replicas": WORKERS - some}, NODESET)
            await place.until_ready(SPACE, WORKERS)
            await operator.settled()
        with step(window.PART):
            rows[window.PART], said = await window.measure(place, operator, some)
            notes += _notes(window.PART, said)
        with step(keys.PART):
            rows[keys.PART], said = await keys.measure(place, operator)
            notes += _notes(keys.PART, said)
        with step("no workers"):
            for name in (NODESET, WINDOW):
                await place.change({"replicas": 0}, name)
            await place.until_gone(SPACE)
        with step(daemon.PART):
            rows[daemon.PART], said = await daemon.measure(place, operator, WORKERS)
            notes += _notes(daemon.PART, said)
    return notes


def _left(port: int) -> list[cluster.Json]:
    return adoption.chart(port, WORKERS)


def _notes(part: str, notes: list[str]) -> list[str]:
    return [f"{part}, {one}" for one in notes]
