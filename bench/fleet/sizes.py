"""What a fleet costs by its size: a settled minute, one pod's change, a restart, memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bench.figures import Figure, Result
from bench.fleet import usage
from bench.fleet.minute import calm, minute
from bench.fleet.operator import Operator
from bench.fleet.phase import Phase, Used
from bench.fleet.site import SPACE, Site, site
from bench.registry import Bench, Settings
from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import PODS
from penstock.api.slinky import labels as slinky_labels
from penstock.local.components import Size
from penstock.local.progress import step

SMALL = (10, 100, 1000)
LARGE = (2500, 5000)
CHANGES = 20
CHANGE_S = 0.5
"""From one change to the next: longer than one takes."""
CORDONS = 5
MARK = "bench.penstock.dev/change"

CPU = "CPU of a settled minute"
WATCH = "CPU of an empty watch"
WRITES = "writes in a settled minute"
CALLS = "Slurm calls in a settled minute"
CHANGE = "CPU of one pod's change"
CORDON = "cordon until drained in Slurm"
RESTART = "restart until settled"
RESTART_CPU = "CPU of a restart"
RESTART_WRITES = "writes in a restart"
MEMORY = "peak memory"
UNITS = {
    CPU: "s",
    WATCH: "s",
    WRITES: "",
    CALLS: "",
    CHANGE: "ms",
    CORDON: "s",
    RESTART: "s",
    RESTART_CPU: "s",
    RESTART_WRITES: "",
    MEMORY: "MiB",
}

Row = dict[str, float]


def small(given: Settings) -> Result:
    """Measure up to 1000 workers."""
    return asyncio.run(_run(given, SMALL))


def large(given: Settings) -> Result:
    """Measure up to 5000 workers."""
    return asyncio.run(_run(given, LARGE))


BENCH = Bench("fleet", "simulated workers settled, changed, found again", 1, Size.FLEET, small)
LARGE_BENCH = Bench("fleet-large", "the same up to 5000", 1, Size.FLEET, large, long=True)


def figure_name(what: str, workers: int) -> str:
    """Name of a figure of one size."""
    return f"{workers}: {what}"


async def _run(given: Settings, sizes: tuple[int, ...]) -> Result:
    rows: dict[int, list[Row]] = {size: [] for size in sizes}
    notes: list[str] = []
    async with site(given.node, sizes[-1]) as place:
        for size in sizes:
            for number in range(given.runs):
                with step(f"{size} workers, {number + 1} of {given.runs}"):
                    row, note = await _measure(place, size)
                    rows[size].append(row)
                    notes.append(f"{size} workers: {note}")
    return Result(_figures(rows), "\n".join(notes))


def _figures(rows: dict[int, list[Row]]) -> tuple[Figure, ...]:
    return tuple(
        Figure(figure_name(what, size), unit, tuple(row[what] for row in found))
        for size, found in rows.items()
        for what, unit in UNITS.items()
    )


async def _measure(place: Site, size: int) -> tuple[Row, str]:
    """All of one size. The operator is started twice: to grow the fleet, and to find it."""
    async with place.operator() as operator:
        await operator.settled()
        await place.scale(size)
        await place.until_ready(SPACE, size)
        await calm(place, operator)
        settled, watch = await _settled(place, operator)
        change = await _changes(place, operator, settled)
        cordon = await _cordons(place)
        await operator.settled()
        peak = operator.peak
    restart, found = await _restart(place)
    row: Row = {
        CPU: settled.cpu,
        WATCH: watch,
        WRITES: settled.counts.writes,
        CALLS: settled.slurm,
        CHANGE: 1000 * change,
        CORDON: cordon,
        RESTART: restart,
        RESTART_CPU: found.cpu,
        RESTART_WRITES: found.counts.writes,
        MEMORY: peak,
    }
    return row, f"settled: {settled.words}\n  restarted: {found.words}"


async def _settled(place: Site, operator: Operator) -> tuple[Used, float]:
    """A minute without any change, beside a client that only watches the same."""
    watched = ("/api/v1/pods", "/api/v1/nodes", "/api/v1/secrets", "/api/v1/configmaps")
    watch = await place.bare_process("watch", *watched)
    try:
        await asyncio.sleep(5.0)
        before = usage.cpu_seconds(watch.pid)
        used = await minute(place, operator)
        return used, usage.cpu_seconds(watch.pid) - before
    finally:
        watch.terminate()
        await watch.communicate()


async def _changes(place: Site, operator: Operator, settled: Used) -> float:
    """CPU-seconds for a change of one pod that asks for nothing, beyond those of settled time."""
    phase = await Phase.begin(place, operator)
    for number, name in enumerate(_some(place, CHANGES)):
        await _annotate(place, name, MARK, str(number))
        await asyncio.sleep(CHANGE_S)
    used = await phase.end()
    return (used.cpu - settled.cpu * used.seconds / settled.seconds) / CHANGES


async def _cordons(place: Site) -> float:
    """Seconds from the annotation of a pod to its drained node: the mean of some."""
    loop = asyncio.get_running_loop()
    took = 0.0
    for name in _some(place, CORDONS):
        began = loop.time()
        await _annotate(place, name, slinky_labels.POD_CORDON, app_labels.TRUE)
        async with asyncio.timeout(60):
            while "DRAIN" not in place.slurm.slurmctld.nodes[name].flags:
                await place.slurm.called(1 + len(place.slurm.calls))
        took += loop.time() - began
        await _annotate(place, name, slinky_labels.POD_CORDON, None)
    return took / CORDONS


async def _restart(place: Site) -> tuple[float, Used]:
    """The operator starts beside a fleet that is as declared."""
    operator = await place.start()
    async with operator:
        began, calls = asyncio.get_running_loop().time(), len(place.slurm.calls)
        await operator.ready()
        settled = await operator.settled()
        counts = await operator.counts()
        slurm = len(place.slurm.calls) - calls
        seconds = settled - began
        return seconds, Used(seconds, operator.cpu, slurm, counts)


def _some(place: Site, count: int) -> Sequence[str]:
    """Names of some workers, the first and the last among them."""
    names = sorted(place.worker_pods[SPACE].ready)
    return [names[i * (len(names) - 1) // max(1, count - 1)] for i in range(count)]


async def _annotate(place: Site, name: str, key: str, value: str | None) -> None:
    body = {"metadata": {"annotations": {key: value}}}
    await place.client.patch(PODS, SPACE, name, body)
