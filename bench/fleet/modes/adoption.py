"""A cluster with a thousand workers as slurm-operator leaves it: it is taken over as it is."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from bench.fleet.cluster import SPACE, Json
from bench.fleet.minute import calm, minute
from bench.fleet.modes import figures
from bench.fleet.modes.figures import Row
from bench.fleet.operator import Operator
from bench.fleet.phase import Used
from bench.fleet.site import Site
from penstock.api.kubernetes.kinds import PODS
from penstock.api.slinky.nodeset import NODESETS
from penstock.simulation.kubelet.pod_manifests import node_conf
from penstock.simulation.slurm_operator import ACTIVE, MANAGER, Upstream, chart_made

PART = "adoption"
NODESET = "slurm-worker-compute"
SLURMCTLD = "slurm-controller-0"
KINDS = "controllers,accountings,restapis,loginsets,nodesets,secrets,configmaps"
WITHIN_S = 300
SECONDS = "operator started until settled"
CPU = "operator CPU until settled"
WRITES = "writes per worker until settled"
OTHERS = "writes but those to workers"
DELETED = "pods deleted"
REPLACED = "pods that are not those of before"
MEMORY = "peak memory"
UNITS = {
    SECONDS: "s",
    CPU: "s",
    WRITES: "",
    OTHERS: "",
    DELETED: "",
    REPLACED: "",
    MEMORY: "MiB",
    **figures.UNITS,
}


def chart(port: int, size: int) -> list[Json]:
    """What the chart left: its objects, for so many workers."""
    found = chart_made(SPACE)
    for one in found:
        if one["kind"] == "Controller":
            # Nothing here makes volumes.
            one["spec"]["persistence"] = {"enabled": False}
        elif one["kind"] == "RestApi":
            one["spec"]["service"]["port"] = port
        elif one["kind"] == "NodeSet":
            one["spec"]["replicas"] = size
    return found


async def leave(place: Site, size: int) -> None:
    """What its operator left: the objects that it made, pods that run, and idle nodes."""
    known = {(one["kind"], one["metadata"]["name"]) for one in chart_made(SPACE)}
    said = await asyncio.to_thread(place.node.kubectl, "get", KINDS, "-n", SPACE, "-o", "json")
    items: list[Json] = json.loads(said)["items"]
    upstream = Upstream([o for o in items if (o["kind"], o["metadata"]["name"]) in known])
    made: Json = {"apiVersion": "v1", "kind": "List", "items": upstream.made()}
    create = ("create", "-f", "-", f"--field-manager={MANAGER}")
    await asyncio.to_thread(lambda: place.node.kubectl(*create, stdin=json.dumps(made)))
    (nodeset,) = upstream.of("NodeSet")
    workers = [upstream.worker(nodeset, ordinal) for ordinal in range(size)]
    _register(place, nodeset, workers)
    place.slurm.slurmctld.read(upstream.slurm_conf())
    async with asyncio.TaskGroup() as group:
        group.create_task(place.bare("create", [json.dumps(one).encode() for one in workers]))
        await place.until_ready(SPACE, size)
    status: Json = {"status": upstream.status(nodeset)}
    await place.client.patch(NODESETS, SPACE, NODESET, status, subresource="status")
    wait = ("wait", "-n", SPACE, f"--timeout={WITHIN_S}s")
    for what in (("jsonpath={.status.readyReplicas}=1", "statefulset"), ("Available", "deploy")):
        how = what[0] if "=" in what[0] else f"condition={what[0]}"
        await asyncio.to_thread(place.node.kubectl, *wait, f"--for={how}", what[1], "--all")
    mark: Json = {"metadata": {"labels": {ACTIVE: "true"}}}
    await place.client.patch(PODS, SPACE, SLURMCTLD, mark)


def _register(place: Site, nodeset: Json, workers: list[Json]) -> None:
    """slurmctld's nodes as that operator's slurmds registered them, and what it noted at them."""
    for worker in workers:
        told = {
            "namespace": SPACE,
            "podName": worker["metadata"]["name"],
            "node": "machine",
            "nodeSetName": NODESET,
            "nodeSetUID": nodeset["metadata"]["uid"],
        }
        place.slurm.slurmctld.register(
            worker["spec"]["hostname"],
            started=int(time.time()),
            comment=json.dumps(told),
            **node_conf(worker).values,
        )


async def measure(place: Site, size: int) -> tuple[Row, list[str]]:
    """The operator starts beside it."""
    before = await asyncio.to_thread(_uids, place)
    began, calls = time.monotonic(), len(place.slurm.calls)
    async with await place.start() as operator:
        await operator.ready()
        settled = await operator.settled()
        counts, cpu = await operator.counts(), operator.cpu
        took = Used(settled - began, cpu, len(place.slurm.calls) - calls, counts)
        await calm(place, operator)
        used = await minute(place, operator)
        row = _row(took, used, operator, size)
    after = await asyncio.to_thread(_uids, place)
    row[REPLACED] = len(before.items() ^ after.items())
    status = place.nodeset_of(NODESET).status
    if not size == status.updated_replicas == status.ready_replicas:
        raise RuntimeError(f"the workers were not taken over: {status}")
    return row, [f"taken over: {took.words}", f"settled: {used.words}"]


def _row(took: Used, used: Used, operator: Operator, size: int) -> Row:
    told = sum(took.counts.requests[verb] for verb in ("patch pods", "patch pods/status"))
    return {
        SECONDS: took.seconds,
        CPU: took.cpu,
        WRITES: told / size,
        OTHERS: took.counts.writes - told,
        DELETED: took.counts.requests["delete pods"] + used.counts.requests["delete pods"],
        REPLACED: 0,
        MEMORY: operator.peak,
        **figures.still(used),
    }


def _uids(place: Site) -> dict[str, str]:
    """Of all pods, by name."""
    items: list[dict[str, Any]] = json.loads(
        place.node.kubectl("get", "pods", "-n", SPACE, "-o", "json")
    )["items"]
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in items}
