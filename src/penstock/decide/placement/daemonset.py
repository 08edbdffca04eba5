"""DaemonSet mode: a pod on each fitting Kubernetes node, and which of the pods are in their place.

A Slurm node has the name of its Kubernetes node up to the first dot, or that of the annotation
`hostname-override`. Two Kubernetes nodes never share a name: the one that has it keeps it, also
while its pod is recreated, and the other one gets no pod of that name until it is free. Two that
are to exchange their names keep them: one would be unavailable until the other is, beyond any
budget.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.kinds import Pod
from penstock.decide.observed import node_comment
from penstock.decide.observed.node_comment import is_owned_by
from penstock.decide.observed.pod import is_per_node, kubernetes_node_name, slurm_node_name
from penstock.decide.observed.pod_aggregates import PodAggregates
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.placement.node_fit import NodeFit, evaluate
from penstock.decide.plan_cache import PlanCache
from penstock.model.worker_marks import WorkerMarks
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_slot import NodePlacements, WorkerSlot
from penstock.slurm.known import Known
from penstock.slurm.state import Node

_HOST = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def slurm_node_on(marks: WorkerMarks, node: KubernetesNode, *, host_network: bool = False) -> str:
    """Name of the Slurm node of a Kubernetes node; in the host network it cannot be chosen."""
    name = node.metadata.name.partition(".")[0]
    if host_network:
        return name
    return node.metadata.annotations.get(marks.hostname, "").strip() or name


def place(
    view: WorkerSetView, aggregates: PodAggregates, cache: PlanCache
) -> NodePlacements | None:
    """The places of a NodeSet in DaemonSet mode; None in the other mode and for a deleted one.

    They are those of the last decision while Kubernetes nodes and pods are unchanged.
    """
    workers = view.workers
    if not workers.per_node or view.deleting:
        return None
    kubernetes_nodes = list(view.kubernetes_nodes.values())
    declared = (workers.names, workers.placement, workers.host_network)
    inputs = (*declared, kubernetes_nodes, aggregates.slurm_node_by_node)
    if cache.placements is not None and cache.placements[0] == inputs:
        return cache.placements[1]
    nodes = view.nodes.value if isinstance(view.nodes, Known) else dict[str, Node]()
    found = placements(workers, kubernetes_nodes, view.pods, nodes)
    # Slurm's records decide as well which of several Kubernetes nodes gets a name.
    cache.placements = None if found.problems else (inputs, found)
    return found


def placements(
    workers: WorkerSet,
    kubernetes_nodes: Iterable[KubernetesNode],
    pods: Sequence[Pod],
    nodes: Mapping[str, Node] = MappingProxyType({}),
) -> NodePlacements:
    """Where pods must be, of all Kubernetes nodes; `pods` and `nodes` are those of the NodeSet.

    The comments of Slurm's `nodes` show who had a name whose pod is gone.
    """
    required, marks = workers.placement, workers.marks
    present = {
        kubernetes_node_name(pod): slurm_node_name(pod) for pod in pods if is_per_node(marks, pod)
    }
    declared: dict[str, str] = {}
    last: set[str] = set()
    for node in sorted(kubernetes_nodes, key=lambda one: one.metadata.name):
        name = node.metadata.name
        # An invalid template selects no Kubernetes node and excludes none.
        fit = evaluate(required, node) if required is not None else NodeFit.KEPT
        if fit is NodeFit.WANTED or (fit is NodeFit.KEPT and name in present):
            declared[name] = slurm_node_on(marks, node, host_network=workers.host_network)
        if fit is NodeFit.KEPT:
            last.add(name)
    problems = _problems(workers, declared, present, nodes)
    if problems:
        # Present pods continue with the name that they have.
        declared |= {name: present.get(name, "") for name in problems}
        declared = {name: slurm_node for name, slurm_node in declared.items() if slurm_node}
    slots = (
        WorkerSlot(workers.names.pod_on(name), slurm_node, node=name)
        for name, slurm_node in declared.items()
    )
    return NodePlacements(tuple(slots), declared, problems, frozenset(last | problems.keys()))


def _problems(
    workers: WorkerSet,
    declared: Mapping[str, str],
    present: Mapping[str, str],
    nodes: Mapping[str, Node],
) -> dict[str, str]:
    """By Kubernetes node, why its Slurm node cannot have the declared name."""
    found = {
        node: f"{name!r} is no host name"
        for node, name in declared.items()
        if not _HOST.fullmatch(name)
    }
    owners = {name: node for node, name in present.items()}
    # One that keeps its name has priority over one that gives it up.
    owners |= {name: node for node, name in present.items() if declared.get(node) == name}
    claimants: defaultdict[str, list[str]] = defaultdict(list)
    for node, name in declared.items():
        if node in found:
            continue
        owner = owners.get(name, node)
        if owner != node:
            found[node] = f"{name!r} is what the node of {owner} is called"
        else:
            claimants[name].append(node)
    for name, many in claimants.items():
        if len(many) == 1:
            continue
        record = nodes.get(name)
        comment = node_comment.read(workers.marks.comment, record.comment) if record else None
        last = comment.node if comment is not None and is_owned_by(comment, workers) else ""
        # One whose pod exists is in service under another name.
        first, *rest = sorted(many, key=lambda node: (node != last, node in present, node))
        found |= dict.fromkeys(rest, f"{name!r} is what the node of {first} is called")
    return found


@dataclass(frozen=True, slots=True)
class PlacedWorkers:
    """Workers at a place, those without one, and places without a worker."""

    kept: tuple[Worker, ...]
    surplus: tuple[Worker, ...]
    missing: tuple[WorkerSlot, ...]


def assign_places(
    observed: ObservedWorkers, placements: NodePlacements, workers: Sequence[Worker]
) -> PlacedWorkers:
    """Assign places to `workers`, those of DaemonSet mode that are not terminating.

    Of several on a Kubernetes node one that runs is kept, else the oldest. A place is not filled
    while a pod that is about to go has its Kubernetes node or its Slurm node's name.
    """
    aggregates = observed.aggregates
    missing = tuple(
        slot
        for slot in placements.slots
        if slot.node not in aggregates.slurm_node_by_node
        and slot.slurm_node not in aggregates.slurm_nodes
    )
    alone = len(aggregates.slurm_node_by_node) == aggregates.daemons == len(workers)
    if alone and aggregates.slurm_node_by_node.keys() <= placements.slurm_nodes.keys():
        # Nearly always, and there may be thousands.
        return PlacedWorkers(tuple(workers), (), missing)
    by_node: defaultdict[str, list[Worker]] = defaultdict(list)
    for worker in workers:
        by_node[worker.kubernetes_node_name].append(worker)
    kept: list[Worker] = []
    surplus: list[Worker] = []
    for kubernetes_node, here in by_node.items():
        if kubernetes_node not in placements.slurm_nodes:
            surplus += here
            continue
        first, *rest = sorted(
            here,
            key=lambda worker: (
                not worker.pod.spec.node_name,
                worker.pod.metadata.creation_timestamp or "",
                worker.name,
            ),
        )
        kept.append(first)
        surplus += rest
    return PlacedWorkers(tuple(kept), tuple(surplus), missing)
