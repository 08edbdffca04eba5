"""The topology of a worker: from its Kubernetes node to Slurm, and then to its pod.

The annotation of the Kubernetes Node is Slurm's `Topology=` of a node (`topo-switch:s2`). slurmctld
gets it when the node has registered. What it accepted is copied to the pod, and no earlier: a
slurmd that starts reads it there, and slurmctld drains a node that registers with a wrong one. It
also stands in the node's comment, so that it is taken back when the annotation goes, and a topology
of a user stays where the Kubernetes node has none. Source: scontrol(1), "update" of nodes,
Topology; and seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.base.text import list_some
from penstock.catalog.event import Event
from penstock.catalog.reasons.slurm_nodes import SlurmNodeReason
from penstock.decide.action import EventReason, SetNodeTopology, TopologyRejection
from penstock.decide.observed.worker import Worker
from penstock.decide.slurm_node import topology_file
from penstock.model.worker_marks import WorkerMarks
from penstock.slurm.state import Node


def wanted(marks: WorkerMarks, node: KubernetesNode | None) -> str | None:
    """The topology of a Kubernetes node; empty for none, None while the node is unknown."""
    if node is None:
        return None
    return node.metadata.annotations.get(marks.topology, "").strip()


def annotation(marks: WorkerMarks, worker: Worker) -> dict[str, str | None]:
    """What is to be copied to the pod; nothing when it has it, or Slurm has not.

    None removes the annotation where the Kubernetes node has none any more.
    """
    place, node = wanted(marks, worker.kubernetes_node), worker.node
    if place is None or worker.is_terminating:
        return {}
    if place and (node is None or node.topology != place):
        return {}
    same = worker.annotations.get(marks.topology, "") == place
    return {} if same else {marks.topology: place or None}


def remembered(node: Node, place: str | None, last: str | None) -> str | None:
    """The topology that the node's comment must record; `last` is the recorded one."""
    if place and node.topology == place:
        return place
    if node.topology is None:
        return last
    return last if place is None or place or node.topology == last else None


def step(
    marks: WorkerMarks,
    worker: Worker,
    rejections: Mapping[str, TopologyRejection],
    now: float,
) -> SetNodeTopology | None:
    """The update of a Slurm node; none while slurmctld rejects it."""
    place, node = wanted(marks, worker.kubernetes_node), worker.node
    if node is None or place is None or node.topology is None or node.topology == place:
        return None
    last = worker.comment.topology if worker.comment is not None else None
    if not place and node.topology != last:
        return None
    rejection = rejections.get(worker.slurm_node)
    if rejection is not None and rejection.topology == place and now < rejection.again_at:
        return None
    change = f"now has topology {place} of its Kubernetes node" if place else "now has no topology"
    return SetNodeTopology(
        node.name, place, EventReason(Event.TOPOLOGY_CHANGED, f"Node {node.name} {change}")
    )


def current_rejections(
    marks: WorkerMarks,
    rejections: Mapping[str, TopologyRejection],
    workers: Iterable[Worker],
) -> Mapping[str, TopologyRejection]:
    """The rejections of topologies that Kubernetes nodes still have, by Slurm node."""
    found: dict[str, TopologyRejection] = {}
    for worker in workers if rejections else ():
        name, node = worker.slurm_node, worker.node
        rejection, place = rejections.get(name), wanted(marks, worker.kubernetes_node)
        if (
            rejection is not None
            and node is not None
            and rejection.topology == place != node.topology
        ):
            found[name] = rejection
    return found


def finding(marks: WorkerMarks, rejections: Mapping[str, TopologyRejection]) -> Finding | None:
    """Return the condition about topologies that slurmctld rejects."""
    if not rejections:
        return None
    shown = [f"{name}: {one.topology} ({one.words})" for name, one in sorted(rejections.items())]
    return Finding(
        False,
        SlurmNodeReason.TOPOLOGY_REFUSED,
        f"slurmctld rejects the annotation {marks.topology} of {len(shown)} Kubernetes nodes, "
        f"whose Slurm nodes stay where they were: {list_some(shown, '; ')}. Correct the "
        "annotation, or topology.yaml",
    )


def retry_after(rejections: Mapping[str, TopologyRejection], now: float) -> float | None:
    """Seconds until the first of them is tried again."""
    return min((max(0.1, one.again_at - now) for one in rejections.values()), default=None)


def exists(place: str, files: Mapping[str, str]) -> bool:
    """Whether a topology.yaml has every unit of a place, so that Slurm cannot reject it.

    A place is `NAME:UNIT[:UNIT...]` for each topology, joined by commas. Source: slurmd(8) and
    scontrol(1), Topology; topology.yaml(5). Of a file that `topology_file` does not read nothing is
    known: the place is sent once the node has registered.
    """
    known = topology_file.read(files.get(topology_file.FILE, "")).units()
    parts = [one.strip().split(":") for one in place.split(",")]
    return all(
        name in known and bool(units) and known[name].issuperset(units) for name, *units in parts
    )
