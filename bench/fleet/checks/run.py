"""The bench `checks`."""

from __future__ import annotations

import asyncio
import json
import time

from bench.figures import Result, in_units
from bench.fleet.checks.cluster import FAILING, checks
from bench.fleet.checks.place import CheckedCluster, checked
from bench.fleet.cluster import SPACE, Json
from bench.fleet.minute import calm, minute
from bench.fleet.modes.figures import Row
from bench.fleet.operator import Operator
from bench.fleet.phase import Phase
from bench.fleet.site import apply
from bench.registry import Bench, Settings
from penstock.api.kubernetes.kinds import JOBS
from penstock.decide.check.submission import JOB_IDS, UNHANDLED_IDS
from penstock.local.components import Size
from penstock.local.progress import step

WORKERS = 1000
BROKEN = 100
"""As many as checks may drain of so many workers."""
TIMEOUT_S = 300.0
LOOK_S = 0.1
WITHOUT_CPU = "without checks: CPU of a minute"
WITHOUT_CALLS = "without checks: Slurm calls in a minute"
WITHOUT_WRITES = "without checks: writes in a minute"
CPU = "all checks: CPU of a minute"
CALLS = "all checks: Slurm calls in a minute"
WRITES = "all checks: writes in a minute"
DRAINED = f"{BROKEN} nodes fail until drained"
DRAIN_CPU = f"CPU until {BROKEN} are drained"
DRAIN_CALLS = "Slurm calls per node that fails"
MEMORY = "peak memory"
UNITS = {
    WITHOUT_CPU: "s",
    WITHOUT_CALLS: "",
    WITHOUT_WRITES: "",
    CPU: "s",
    CALLS: "",
    WRITES: "",
    DRAINED: "s",
    DRAIN_CPU: "s",
    DRAIN_CALLS: "",
    MEMORY: "MiB",
}


def run(given: Settings) -> Result:
    """Measure."""
    return asyncio.run(_run(given))


BENCH = Bench(
    "checks",
    f"a SlurmCluster with {WORKERS} workers and checks",
    1,
    Size.FLEET,
    run,
    long=True,
)


async def _run(given: Settings) -> Result:
    rows: list[Row] = []
    notes: list[str] = []
    for number in range(given.runs):
        async with checked(given.node, WORKERS) as place, await place.operator() as operator:
            await operator.ready()
            with step(f"{WORKERS} workers, {number + 1} of {given.runs}"):
                await place.scale(WORKERS)
                await calm(place, operator)
            row, said = await _measure(place, operator)
            rows.append(row)
            notes += said
    return Result(in_units(UNITS, rows), "\n".join(notes))


async def _measure(place: CheckedCluster, operator: Operator) -> tuple[Row, list[str]]:
    with step("a minute without checks"):
        without = await minute(place, operator)
    with step("first runs of all checks"):
        await asyncio.to_thread(apply, place.node, checks())
        job = await _first_run(place)
        await calm(place, operator)
    with step("a minute with all checks"):
        with_checks = await minute(place, operator)
    with step(f"{BROKEN} nodes fail"):
        ids = _ended_jobs(place)
        phase = await Phase.begin(place, operator)
        text = ",".join(map(str, ids))
        body: Json = {"metadata": {"annotations": {JOB_IDS: text, UNHANDLED_IDS: text}}}
        await place.client.patch(JOBS, SPACE, job, body)
        drained = await _until_drained(place)
        used = await phase.end()
        await calm(place, operator)
        late = _drained(place) - BROKEN
    if late:
        raise RuntimeError(f"{late} nodes more than those that failed are drained")
    row = {
        WITHOUT_CPU: without.cpu,
        WITHOUT_CALLS: without.slurm,
        WITHOUT_WRITES: without.counts.writes,
        CPU: with_checks.cpu,
        CALLS: with_checks.slurm,
        WRITES: with_checks.counts.writes,
        DRAINED: drained - phase.began,
        DRAIN_CPU: used.cpu,
        DRAIN_CALLS: used.slurm / BROKEN,
        MEMORY: operator.peak,
    }
    notes = [f"without: {without.words}", f"all: {with_checks.words}", f"failing: {used.words}"]
    return row, notes


async def _first_run(place: CheckedCluster) -> str:
    """Name of the Job of the failing check, once there is one."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        said = await asyncio.to_thread(place.node.kubectl, "get", "jobs", "-n", SPACE, "-o", "json")
        found = [one["metadata"] for one in json.loads(said)["items"]]
        for meta in found:
            if any(one["name"] == FAILING for one in meta.get("ownerReferences", ())):
                return meta["name"]
        await asyncio.sleep(1.0)
    raise TimeoutError(f"no Job of check {FAILING} within {TIMEOUT_S:g} s")


def _ended_jobs(place: CheckedCluster) -> list[int]:
    """A job on each worker has ended: so many failed, the others completed."""
    slurm = place.slurm.slurmctld
    ids: list[int] = []
    for number, name in enumerate(sorted(slurm.nodes)):
        job = slurm.run(name, name=FAILING)
        slurm.finish(job, "FAILED" if number < BROKEN else "COMPLETED")
        ids.append(job.id)
    return ids


async def _until_drained(place: CheckedCluster) -> float:
    deadline = time.monotonic() + TIMEOUT_S
    while _drained(place) < BROKEN:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{_drained(place)} of {BROKEN} drained within {TIMEOUT_S:g} s")
        await asyncio.sleep(LOOK_S)
    return time.monotonic()


def _drained(place: CheckedCluster) -> int:
    return sum("DRAIN" in one.flags for one in place.slurm.slurmctld.nodes.values())
