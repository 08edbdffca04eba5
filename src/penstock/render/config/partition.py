"""The Partitions of a cluster as lines of slurm.conf, and the nodes that belong to each.

Whole NodeSets and ALL are named as they are: slurmctld itself follows their nodes. Nodes that are
named or selected one by one belong by a feature of their record, since slurmctld does not start on
a line that names a dynamic node which has no record yet.
Source: slurm.conf(5), PARTITION CONFIGURATION and NODE SET CONFIGURATION.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from penstock.api.kubernetes.kinds import Requirement
from penstock.model.cluster import Cluster
from penstock.model.partition_spec import PartitionSpec, WorkerSelector
from penstock.slurm import hostlist
from penstock.slurm.conf.document import Document, quoted
from penstock.slurm.partition.declaration import ALL, NODE_SET, PARTITION, feature, node_set
from penstock.slurm.state import Node

MOST_ABSENT = 100
"""Nodes without a record that are looked for."""


@dataclass(frozen=True, slots=True)
class Worker:
    """Labels of the pod of a Slurm node, and of its Kubernetes node."""

    pod_labels: Mapping[str, str] = field(default_factory=dict[str, str])
    node_labels: Mapping[str, str] = field(default_factory=dict[str, str])


def served(cluster: Cluster) -> tuple[PartitionSpec, ...]:
    """The Partitions that are rendered, by Slurm's name: of those of one name the oldest."""
    found: dict[str, PartitionSpec] = {}
    taken = _taken(cluster)
    for one in sorted(cluster.partitions, key=_age):
        if one.name not in taken and not one.is_deleting:
            found.setdefault(one.name, one)
    return tuple(found[name] for name in sorted(found) if found[name].is_valid)


def conflict(cluster: Cluster, partition: PartitionSpec) -> str:
    """Who has the partition's name already, in words; empty when nobody has."""
    name = partition.name
    if (owner := _taken(cluster).get(name)) is not None:
        return owner
    for one in sorted(cluster.partitions, key=_age):
        if one.name == name and not one.is_deleting:
            same = one.declared_by.name == partition.declared_by.name
            return "" if same else str(one.declared_by)
    return ""


def invalid(cluster: Cluster) -> frozenset[str]:
    """Names of invalid partitions: slurm.conf keeps their former lines."""
    return frozenset(
        one.name for one in cluster.partitions if not one.is_deleting and not one.is_valid
    ) - frozenset(one.name for one in served(cluster))


def lines(cluster: Cluster) -> list[str]:
    """The lines, sorted by partition; none without a Partition."""
    found: list[str] = []
    for one in served(cluster):
        name = one.name
        sets = set_names(cluster, one)
        if marked(cluster, one):
            found.append(f"NodeSet={node_set(name)} Feature={feature(name)}")
            sets = [*sets, node_set(name)]
        words = [f"PartitionName={name}", *([f"Nodes={','.join(sets)}"] if sets else [])]
        words += (f"{key}={quoted(value)}" for key, value in one.settings.items())
        found.append(" ".join(words))
    return found


def missing(cluster: Cluster, partition: PartitionSpec) -> list[str]:
    """NodeSets that a Partition names and that are not there, sorted."""
    there = {one.declared_by.name for one in cluster.node_sets}
    return sorted(set(partition.worker_sets) - there)


def marked(cluster: Cluster, partition: PartitionSpec) -> bool:
    """Whether some of its nodes belong to it one by one."""
    return partition.selector is not None or any(
        entry.startswith("-") or _host_words(cluster, entry.lstrip("+"))
        for entry in partition.nodes
    )


def set_names(cluster: Cluster, partition: PartitionSpec) -> list[str]:
    """The node sets that belong to it as a whole, in Slurm's names, sorted."""
    if any(entry.startswith("-") for entry in partition.nodes):
        return []
    by_name = {one.declared_by.name: one.name for one in cluster.node_sets}
    found = {by_name[name] for name in partition.worker_sets if name in by_name}
    known = _sets(cluster)
    for entry in partition.nodes:
        found.update(word for word in hostlist.split(entry.lstrip("+")) if word in known)
    return [ALL] if ALL in found else sorted(found)


def members(
    cluster: Cluster,
    partition: PartitionSpec,
    nodes: Mapping[str, Node],
    workers: Mapping[str, Worker],
) -> frozenset[str]:
    """The nodes that belong to it one by one, of those that slurmctld has a record of."""
    found = named(cluster, partition, nodes)
    if partition.selector is not None:
        selector = partition.selector
        found |= {
            name
            for name, node in nodes.items()
            if _selected(selector, node, workers.get(name, Worker()))
        }
        removed = _removed(cluster, partition.nodes, nodes)
        found -= removed
    return frozenset(found & nodes.keys())


def absent(cluster: Cluster, partition: PartitionSpec, nodes: Mapping[str, Node]) -> list[str]:
    """The first nodes that it names one by one and of which slurmctld has no record, sorted.

    No more than MOST_ABSENT, since a message names fewer and an expression may stand for thousands.
    """
    known = _sets(cluster)
    entries = [entry for entry in partition.nodes if not entry.startswith("-")]
    removed = ",".join(entry[1:] for entry in partition.nodes if entry.startswith("-"))
    found: dict[str, None] = {}
    for entry in entries:
        for word in hostlist.split(entry.lstrip("+")):
            for name in hostlist.each(word) if word not in known else ():
                if name not in nodes:
                    found[name] = None
                if len(found) >= MOST_ABSENT:
                    break
    gone = hostlist.among(_hosts_of(removed, known), found) if removed else set[str]()
    return sorted(found.keys() - gone)


def _hosts_of(entry: str, known: Collection[str]) -> str:
    return ",".join(word for word in hostlist.split(entry) if word not in known)


def named(cluster: Cluster, partition: PartitionSpec, nodes: Mapping[str, Node]) -> set[str]:
    """The nodes that it names one by one, of those that slurmctld has a record of."""
    whole = any(entry.startswith("-") for entry in partition.nodes)
    base = [entry for entry in partition.nodes if entry[:1] not in "+-"]
    steps = [entry for entry in partition.nodes if entry[:1] in "+-"]
    found: set[str] = set()
    if whole:
        by_name = {one.declared_by.name: one.name for one in cluster.node_sets}
        for name in partition.worker_sets:
            found |= _expanded(cluster, by_name.get(name, ""), nodes, sets=True)
    for entry in base:
        found |= _expanded(cluster, entry, nodes, sets=whole)
    for entry in steps:
        part = _expanded(cluster, entry[1:], nodes, sets=whole)
        found = found - part if entry.startswith("-") else found | part
    return found


def _removed(cluster: Cluster, entries: Iterable[str], nodes: Mapping[str, Node]) -> set[str]:
    """What the entries take away in the end."""
    found: set[str] = set()
    for entry in entries:
        if entry[:1] in "+-":
            part = _expanded(cluster, entry[1:], nodes, sets=True)
            found = found | part if entry.startswith("-") else found - part
    return found


def _expanded(cluster: Cluster, entry: str, nodes: Mapping[str, Node], *, sets: bool) -> set[str]:
    """The nodes of an entry; those of whole node sets only with `sets`."""
    found: set[str] = set()
    known = _sets(cluster)
    for word in hostlist.split(entry):
        if word not in known:
            found |= hostlist.among(word, nodes.keys())
        elif sets:
            found |= nodes.keys() if word == ALL else _with(known[word], nodes)
    return found


def _with(words: Mapping[str, str], nodes: Mapping[str, Node]) -> set[str]:
    """The nodes of a NodeSet line."""
    wanted = words.get("feature", "")
    found = {name for name, node in nodes.items() if wanted and wanted in node.features}
    return found | hostlist.among(words.get("nodes", ""), nodes.keys())


def _sets(cluster: Cluster) -> dict[str, dict[str, str]]:
    """The node sets of slurm.conf, with the keys of their line in lower case."""
    found: dict[str, dict[str, str]] = {ALL: {}}
    for record in Document.parse(cluster.extra_conf).records(NODE_SET):
        found[record.name] = {one.key.lower(): one.value for one in record.settings}
    for one in cluster.node_sets:
        found[one.name] = {"feature": one.name}
    return found


def _host_words(cluster: Cluster, entry: str) -> list[str]:
    known = _sets(cluster)
    return [word for word in hostlist.split(entry) if word not in known]


def _taken(cluster: Cluster) -> dict[str, str]:
    """Partitions that are declared elsewhere, and where."""
    found = {
        record.name: f"extraConf of the {cluster.declared_by.kind}"
        for record in Document.parse(cluster.extra_conf).records(PARTITION)
    }
    for one in cluster.node_sets:
        if one.partition is not None:
            found[one.name] = str(one.declared_by)
    return found


def _age(partition: PartitionSpec) -> tuple[str, str]:
    return partition.created, partition.declared_by.name


def _selected(selector: WorkerSelector, node: Node, worker: Worker) -> bool:
    return (
        selector.features <= set(node.features)
        and all(_meets(one, worker.pod_labels) for one in selector.pod_labels)
        and all(_meets(one, worker.node_labels) for one in selector.node_labels)
    )


def _meets(one: Requirement, labels: Mapping[str, str]) -> bool:
    values = one.values or ()
    match one.operator:
        case "Exists":
            return one.key in labels
        case "DoesNotExist":
            return one.key not in labels
        case "In":
            return labels.get(one.key) in values
        case "NotIn":
            return labels.get(one.key) not in values
        case _:
            return False
