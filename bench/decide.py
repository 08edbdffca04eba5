"""CPU of one decision about a fleet, without a cluster: one pod changed, or all seen first."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import msgspec

from bench.figures import Figure, Result
from bench.registry import Bench, Given
from penstock.api.core import Node, Pod
from penstock.api.slinky import wellknown
from penstock.api.slinky.nodeset import NodeSet
from penstock.decide import records
from penstock.decide.nodeset import plan
from penstock.decide.quiet import Quiet
from penstock.decide.view import ControllerState, NodeSetView
from penstock.slurm import model
from penstock.slurm.known import Known

SIZES = (10, 100, 1000, 5000)
NOW = 1_800_000_000.0
WHEN = "2027-01-15T08:00:00Z"
REVISION = "revision"


def run(given: Given) -> Result:
    """Measure."""
    changed: dict[int, list[float]] = {size: [] for size in SIZES}
    first: dict[int, list[float]] = {size: [] for size in SIZES}
    for size in SIZES:
        view = fleet(size)
        for _ in range(given.runs):
            quiet = Quiet()
            first[size].append(_milliseconds(view, quiet))
            changed[size].append(_milliseconds(_one_changed(view), quiet))
    figures = [
        *(Figure(f"{size}: one pod changed", "ms", tuple(changed[size])) for size in SIZES),
        *(Figure(f"{size}: all seen first", "ms", tuple(first[size])) for size in SIZES),
    ]
    return Result(tuple(figures), "CPU milliseconds; the number is that of the workers.")


BENCH = Bench("decide", "one decision about a NodeSet, CPU only", 10, None, run)


def fleet(size: int) -> NodeSetView:
    """A settled NodeSet of that size, decoded from the API server's and slurmrestd's words."""
    nodeset = _nodeset(size)
    pods = tuple(_pod(number) for number in range(size))
    return NodeSetView(
        nodeset=nodeset,
        controller=ControllerState.PRESENT,
        pods=pods,
        nodes=Known({pod.metadata.name: _record(pod) for pod in pods}, 1.0),
        jobs=Known((), 1.0),
        now=NOW,
        revision=REVISION,
        kubernetes_nodes={f"machine-{n}": _machine(n) for n in range(size)},
    )


def _milliseconds(view: NodeSetView, quiet: Quiet) -> float:
    began = time.process_time()
    decided = plan(view, quiet)
    taken = time.process_time() - began
    if decided.actions:
        raise AssertionError(f"not settled: {decided.actions[:3]}")
    return 1000 * taken


def _one_changed(view: NodeSetView) -> NodeSetView:
    pod = msgspec.structs.replace(view.pods[-1])
    return dataclasses.replace(view, pods=(*view.pods[:-1], pod))


def _decoded(kind: type[Any], **content: Any) -> Any:
    return msgspec.json.decode(json.dumps(content).encode(), type=kind)


def _nodeset(size: int) -> NodeSet:
    meta: dict[str, Any] = {"name": "worker", "namespace": "fleet", "uid": "nodeset"}
    meta["finalizers"] = [wellknown.DRAIN_FINALIZER]
    spec = {"controllerRef": {"name": "slurm"}, "replicas": size}
    return _decoded(NodeSet, metadata=meta, spec=spec)


def _pod(number: int) -> Pod:
    name = f"worker-{number}"
    owner = {"kind": "NodeSet", "name": "worker", "uid": "nodeset", "controller": True}
    said = {"status": "True", "lastTransitionTime": WHEN}
    conditions = [
        {"type": "PodScheduled", **said},
        {"type": "Ready", **said},
        {"type": "SlurmNodeStateIdle", "message": "", **said},
    ]
    running = {"name": "slurmd", "ready": True, "state": {"running": {"startedAt": WHEN}}}
    return _decoded(
        Pod,
        metadata={
            "name": name,
            "namespace": "fleet",
            "uid": f"uid-{number}",
            "resourceVersion": str(number),
            "creationTimestamp": WHEN,
            "labels": wellknown.worker_labels("worker", "slurm")
            | {wellknown.REVISION_HASH: REVISION},
            "ownerReferences": [owner],
        },
        spec={"nodeName": f"machine-{number}", "hostname": name},
        status={"phase": "Running", "conditions": conditions, "containerStatuses": [running]},
    )


def _machine(number: int) -> Node:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": WHEN}
    name = f"machine-{number}"
    return _decoded(Node, metadata={"name": name}, status={"conditions": [ready]})


def _record(pod: Pod) -> model.Node:
    name = pod.metadata.name
    comment = records.Record("fleet", name, pod.spec.node_name or "", "worker", "nodeset").text
    return model.Node(name, frozenset({"IDLE", "DYNAMIC_NORM"}), comment=comment)
