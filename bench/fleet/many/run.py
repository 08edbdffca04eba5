"""The bench `many`."""

from __future__ import annotations

import asyncio
import statistics
import time

from bench.figures import Result, in_units
from bench.fleet.cluster import NODESET, Json
from bench.fleet.many.cluster import (
    BROKEN,
    LOST,
    QUOTA,
    REJECTED_POD,
    SLURM_FAULTS,
    WORKERS,
    space,
)
from bench.fleet.many.place import ManyClusters, many
from bench.fleet.minute import minute
from bench.fleet.modes.figures import Row
from bench.fleet.operator import Operator
from bench.fleet.site import apply
from bench.registry import Bench, Settings
from penstock.api.slinky.nodeset import NODESETS
from penstock.local.components import Size
from penstock.local.progress import step

CLUSTERS = 200
CHANGES = 5
"""Healthy clusters that are changed, one after the other."""
REST_S = 15.0
"""Without a request to the API server for so long counts as rest."""
TO_BREAK_S = 30.0
"""After so long the operator has met each broken cluster."""
CREATED = "created by kubectl"
READY = "created until all are ready"
READY_CPU = "operator CPU until all are ready"
CPU = "CPU of a minute"
WRITES = "writes in a minute"
CALLS = "Slurm calls in a minute"
CHANGE = "one more worker of one cluster ready"
MEMORY = "memory"
BROKEN_CPU = f"{BROKEN} broken: CPU of a minute"
BROKEN_WRITES = f"{BROKEN} broken: writes in a minute"
BROKEN_CHANGE = f"{BROKEN} broken: one more worker of another ready"
RATIO = f"change beside {BROKEN} broken over change without"
PEAK = "peak memory"
UNITS = {
    CREATED: "s",
    READY: "s",
    READY_CPU: "s",
    CPU: "s",
    WRITES: "",
    CALLS: "",
    CHANGE: "s",
    MEMORY: "MiB",
    BROKEN_CPU: "s",
    BROKEN_WRITES: "",
    BROKEN_CHANGE: "s",
    RATIO: "x",
    PEAK: "MiB",
}


def run(given: Settings) -> Result:
    """Measure."""
    return asyncio.run(_run(given))


BENCH = Bench(
    "many",
    f"{CLUSTERS} clusters of {WORKERS} workers, {BROKEN} of them broken",
    1,
    Size.FLEET,
    run,
    long=True,
)


async def _run(given: Settings) -> Result:
    rows: list[Row] = []
    notes: list[str] = []
    for number in range(given.runs):
        async with many(given.node, CLUSTERS) as place, await place.operator() as operator:
            await operator.ready()
            with step(f"{CLUSTERS} clusters, {number + 1} of {given.runs}"):
                row = await _create(place, operator)
            with step("a minute at rest"):
                used = await minute(place, operator)
                row |= {CPU: used.cpu, WRITES: used.counts.writes, CALLS: used.slurm}
                notes.append(f"at rest: {used.words}")
            row[MEMORY] = operator.memory
            with step("one more worker"):
                row[CHANGE] = await _changes(place, 0)
            with step(f"{BROKEN} clusters are broken"):
                await _break(place)
                await asyncio.sleep(TO_BREAK_S)
                used = await minute(place, operator)
                row |= {BROKEN_CPU: used.cpu, BROKEN_WRITES: used.counts.writes}
                notes.append(f"{BROKEN} broken: {used.words}")
                row[BROKEN_CHANGE] = await _changes(place, CHANGES)
            row[RATIO] = row[BROKEN_CHANGE] / row[CHANGE]
            row[PEAK] = operator.peak
            rows.append(row)
    return Result(in_units(UNITS, rows), "\n".join(notes))


async def _create(place: ManyClusters, operator: Operator) -> Row:
    cpu, began = operator.cpu, time.monotonic()
    created = await place.create()
    every = CLUSTERS * WORKERS
    ready = await place.changes.until(lambda: place.ready() == every, f"{every} Ready")
    row = {CREATED: created, READY: ready - began, READY_CPU: operator.cpu - cpu}
    await operator.settled(idle=REST_S)
    return row


async def _changes(place: ManyClusters, first: int) -> float:
    """Seconds for a worker more of one cluster: the median of some clusters."""
    healthy = range(BROKEN + first, BROKEN + first + CHANGES)
    return statistics.median([await place.scale(one, WORKERS + 1) for one in healthy])


async def _break(place: ManyClusters) -> None:
    """Break the first clusters, each in another way."""
    for slurm, fault in zip(place.slurms, SLURM_FAULTS, strict=False):
        slurm.fault = fault
    number = len(SLURM_FAULTS)
    body: Json = {"spec": REJECTED_POD}
    await place.client.patch(NODESETS, space(number), NODESET, body)
    for one in LOST.values():
        number += 1
        meta = {**one["metadata"], "namespace": space(number)}
        await asyncio.to_thread(apply, place.node, [{**one, "metadata": meta}])
    number += 1
    quota: Json = {**QUOTA, "metadata": {**QUOTA["metadata"], "namespace": space(number)}}
    await asyncio.to_thread(apply, place.node, [quota])
    worker = ("delete", "pod", f"{NODESET}-0", "-n", space(number), "--wait=false")
    await asyncio.to_thread(place.node.kubectl, *worker)
