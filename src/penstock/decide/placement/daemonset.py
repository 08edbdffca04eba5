"""DaemonSet mode: a pod on each fitting Kubernetes node, and which of the pods are in their place.

A Slurm node is called as its machine up to the first dot, or as the machine's annotation
`hostname-override` says. Two machines never share a name: who has it keeps it, also while its pod
is made anew, and the other one gets no pod of that name until it is free. Two that shall change
names with each other stay as they are: one would be out until the other is, beyond any budget.
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
from penstock.decide.observed.pod import is_daemon, kubernetes_node_name, slurm_node_name
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


def host_of(marks: WorkerMarks, machine: KubernetesNode, *, host_network: bool = False) -> str:
    """What the Slurm node of a machine is called. In the host's network nobody can choose it."""
    name = machine.metadata.name.partition(".")[0]
    if host_network:
        return name
    return machine.metadata.annotations.get(marks.hostname, "").strip() or name


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
    machines: Iterable[KubernetesNode],
    pods: Sequence[Pod],
    nodes: Mapping[str, Node] = MappingProxyType({}),
) -> NodePlacements:
    """Where pods shall be; `machines` are all there are, `pods` and `nodes` those of the NodeSet.

    Slurm's `nodes` say whose a name was whose pod is gone.
    """
    wished, marks = workers.placement, workers.marks
    having = {
        kubernetes_node_name(pod): slurm_node_name(pod) for pod in pods if is_daemon(marks, pod)
    }
    hosts: dict[str, str] = {}
    last: set[str] = set()
    for machine in sorted(machines, key=lambda one: one.metadata.name):
        name = machine.metadata.name
        # A template that is written wrong says nothing about any machine.
        fits = evaluate(wished, machine) if wished is not None else NodeFit.KEPT
        if fits is NodeFit.WANTED or (fits is NodeFit.KEPT and name in having):
            hosts[name] = host_of(marks, machine, host_network=workers.host_network)
        if fits is NodeFit.KEPT:
            last.add(name)
    problems = _problems(workers, hosts, having, nodes)
    if problems:
        # What is there goes on under the name that it has.
        hosts |= {name: having.get(name, "") for name in problems}
        hosts = {name: host for name, host in hosts.items() if host}
    slots = (
        WorkerSlot(workers.names.pod_on(name), host, node=name) for name, host in hosts.items()
    )
    return NodePlacements(tuple(slots), hosts, problems, frozenset(last | problems.keys()))


def _problems(
    workers: WorkerSet,
    hosts: Mapping[str, str],
    having: Mapping[str, str],
    nodes: Mapping[str, Node],
) -> dict[str, str]:
    """Why machines are not called as they shall be: `hosts` by what is wanted, `having` is."""
    found = {
        machine: f"{host!r} is no host name"
        for machine, host in hosts.items()
        if not _HOST.fullmatch(host)
    }
    holders = {host: machine for machine, host in having.items()}
    # One that keeps its name goes before one that gives it up.
    holders |= {host: machine for machine, host in having.items() if hosts.get(machine) == host}
    claims: defaultdict[str, list[str]] = defaultdict(list)
    for machine, host in hosts.items():
        if machine in found:
            continue
        holder = holders.get(host, machine)
        if holder != machine:
            found[machine] = f"{host!r} is what the node of {holder} is called"
        else:
            claims[host].append(machine)
    for host, many in claims.items():
        if len(many) == 1:
            continue
        record = node_comment.read(nodes[host].comment) if host in nodes else None
        last = record.node if record is not None and is_owned_by(record, workers) else ""
        # Whose pod is there works, under another name.
        first, *rest = sorted(many, key=lambda name: (name != last, name in having, name))
        found |= dict.fromkeys(rest, f"{host!r} is what the node of {first} is called")
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
