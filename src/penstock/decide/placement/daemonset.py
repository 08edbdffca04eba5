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
from dataclasses import dataclass, replace
from types import MappingProxyType

from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.kinds import Pod
from penstock.decide.observed import node_comment
from penstock.decide.observed.node_comment import is_owned_by
from penstock.decide.observed.pod import is_daemon, kubernetes_node_name, slurm_node_name
from penstock.decide.observed.view import WorkerSetView
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


def placed(view: WorkerSetView, quiet: PlanCache) -> WorkerSetView:
    """The view with the places that a NodeSet in DaemonSet mode shall have pods in.

    They are those of the last time while machines and pods are where they were then.
    """
    workers = view.workers
    if not workers.per_node or view.deleting:
        return view
    machines = list(view.kubernetes_nodes.values())
    declared = (workers.names, workers.placement, workers.host_network)
    given = (*declared, machines, view.aggregates.slurm_node_by_node)
    if quiet.places is None or quiet.places[0] != given:
        nodes = view.nodes.value if isinstance(view.nodes, Known) else dict[str, Node]()
        found = places(workers, machines, view.pods, nodes)
        # Who gets a name that several want is for Slurm's records to say, too.
        quiet.places = None if found.problems else (given, found)
        return replace(view, places=found)
    return replace(view, places=quiet.places[1])


def places(
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
class Placed:
    """Pods that are where one is wanted, those that are not, and places without any."""

    kept: tuple[Pod, ...]
    surplus: tuple[Pod, ...]
    missing: tuple[WorkerSlot, ...]


def place(view: WorkerSetView, found: NodePlacements, pods: Sequence[Pod]) -> Placed:
    """Tell the pods of the mode apart, `pods` being those that are not terminating.

    Of several on a machine one that runs is kept, else the oldest. A place is not filled while a
    pod that is on its way out has its machine or its Slurm node's name.
    """
    aggregates = view.aggregates
    missing = tuple(
        slot
        for slot in found.slots
        if slot.node not in aggregates.slurm_node_by_node
        and slot.slurm_node not in aggregates.slurm_nodes
    )
    alone = len(aggregates.slurm_node_by_node) == aggregates.daemons == len(pods)
    if alone and aggregates.slurm_node_by_node.keys() <= found.slurm_nodes.keys():
        # Nearly always, and there may be thousands.
        return Placed(tuple(pods), (), missing)
    at: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        at[kubernetes_node_name(pod)].append(pod)
    kept: list[Pod] = []
    surplus: list[Pod] = []
    for machine, here in at.items():
        if machine not in found.slurm_nodes:
            surplus += here
            continue
        first, *rest = sorted(
            here,
            key=lambda pod: (
                not pod.spec.node_name,
                pod.metadata.creation_timestamp or "",
                pod.metadata.name,
            ),
        )
        kept.append(first)
        surplus += rest
    return Placed(tuple(kept), tuple(surplus), missing)


def is_last_on_node(view: WorkerSetView, pod: Pod) -> bool:
    """Whether a pod is in its place, and no other one would come there if it went."""
    if view.places is None or not is_daemon(view.workers.marks, pod):
        return False
    return kubernetes_node_name(pod) in view.places.last


def has_wrong_node_name(view: WorkerSetView, pod: Pod) -> bool:
    """Whether its Slurm node shall be called otherwise now."""
    if view.places is None or not pod.spec.hostname:
        return False
    wanted = view.places.slurm_nodes.get(kubernetes_node_name(pod))
    return wanted is not None and wanted != slurm_node_name(pod)
