"""A settled NodeSet of any size, decoded from the API server's and slurmrestd's words."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import msgspec

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import Node, PersistentVolumeClaim, Pod
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.nodeset import NodeSet
from penstock.decide.observed import node_comment
from penstock.decide.observed.reservations import ObservedReservations
from penstock.decide.observed.revisions import Revisions
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.slurm import state as model
from penstock.slurm.known import Known
from penstock.slurm.reservation import Reservation
from penstock.slurm.reservation_schedule import OURS
from penstock.translate.slinky.worker_set import DAEMON_SET, MARKS, worker_set

NOW = 1_800_000_000.0
WHEN = "2027-01-15T08:00:00Z"
START_S = 3600
REVISION, OLDER = "revision", "older"
SHARE = 10
"""Of so many workers one waits for the reservation of a scheduled update."""


class Shape(Enum):
    """What a NodeSet declares beside its number."""

    PLAIN = ""
    DAEMONS = "DaemonSet mode"
    STORED = "claims and pins"
    SCHEDULED = "scheduled update"


def fleet(size: int, shape: Shape = Shape.PLAIN) -> WorkerSetView:
    """A NodeSet of that size, about which there is nothing to do."""
    nodeset = _nodeset(size, shape)
    pods = tuple(_pod(nodeset, number, shape) for number in range(size))
    nodes = {str(pod.spec.hostname): _record(pod) for pod in pods}
    reserved = frozenset(
        str(pod.spec.hostname)
        for pod in pods
        if pod.metadata.labels[slinky_labels.REVISION_HASH] == OLDER
    )
    maintenance = Reservation(
        names.reservation(nodeset),
        nodes=reserved,
        flags=frozenset((*OURS, "SPEC_NODES")),
        start=int(NOW) + START_S,
        end=int(NOW) + 2 * START_S,
    )
    return WorkerSetView(
        workers=worker_set(nodeset),
        controller=ControllerState.PRESENT,
        pods=pods,
        nodes=Known(nodes, 1.0),
        jobs=Known((), 1.0),
        now=NOW,
        revisions=Revisions(REVISION),
        kubernetes_nodes={f"machine-{n}": _kubernetes_node(n) for n in range(size)},
        pvcs=_pvcs(nodeset, size) if shape is Shape.STORED else {},
        reservations=ObservedReservations(
            Known({maintenance.name: maintenance} if reserved else {}, 1.0)
        ),
    )


def _decoded(kind: type[Any], **content: Any) -> Any:
    return msgspec.json.decode(json.dumps(content).encode(), type=kind)


def _nodeset(size: int, shape: Shape) -> NodeSet:
    meta: dict[str, Any] = {"name": "worker", "namespace": "fleet", "uid": "nodeset"}
    meta["finalizers"] = [marks.DRAIN_FINALIZER]
    spec: dict[str, Any] = {"controllerRef": {"name": "slurm"}, "replicas": size}
    status: dict[str, Any] = {}
    match shape:
        case Shape.PLAIN:
            pass
        case Shape.DAEMONS:
            spec["scalingMode"] = DAEMON_SET
        case Shape.STORED:
            claim = {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            }
            spec["volumeClaimTemplates"] = [{"metadata": {"name": "cache"}, "spec": claim}]
            spec["pinToNode"] = True
            status["ordinalToNode"] = {str(n): f"machine-{n}" for n in range(size)}
        case Shape.SCHEDULED:
            meta["finalizers"].append(slinky_labels.RESERVATION_FINALIZER)
            window = {"startTime": "2027-01-15T09:00:00Z", "duration": "1h"}
            spec["updateStrategy"] = {"type": "ScheduledUpdate", "scheduledUpdate": window}
    return _decoded(NodeSet, metadata=meta, spec=spec, status=status)


def _pod(nodeset: NodeSet, number: int, shape: Shape) -> Pod:
    machine = f"machine-{number}"
    name = host = f"worker-{number}"
    labels = slinky_labels.worker_labels("worker", "slurm")
    old = shape is Shape.SCHEDULED and number % SHARE == 0
    labels |= {slinky_labels.REVISION_HASH: OLDER if old else REVISION}
    if shape is Shape.DAEMONS:
        name, host = names.node_pod_name(nodeset, machine), machine
        labels |= {slinky_labels.SCALING_MODE: DAEMON_SET}
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
            "labels": labels,
            "ownerReferences": [owner],
        },
        spec={"nodeName": machine, "hostname": host},
        status={"phase": "Running", "conditions": conditions, "containerStatuses": [running]},
    )


def _pvcs(nodeset: NodeSet, size: int) -> dict[str, PersistentVolumeClaim]:
    called = [names.worker_pvc(nodeset, "cache", number) for number in range(size)]
    return {
        name: _decoded(PersistentVolumeClaim, metadata={"name": name, "uid": name})
        for name in called
    }


def _kubernetes_node(number: int) -> Node:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": WHEN}
    name = f"machine-{number}"
    return _decoded(Node, metadata={"name": name}, status={"conditions": [ready]})


def _record(pod: Pod) -> model.Node:
    name, host = pod.metadata.name, str(pod.spec.hostname)
    old = pod.metadata.labels[slinky_labels.REVISION_HASH] == OLDER
    machine = pod.spec.node_name or ""
    comment = node_comment.NodeComment("fleet", name, machine, "worker", "nodeset", renew=old)
    return model.Node(
        host, frozenset({"IDLE", "DYNAMIC_NORM"}), comment=comment.text(MARKS.comment)
    )
