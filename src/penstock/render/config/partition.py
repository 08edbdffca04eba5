"""The Partitions of a cluster as lines of slurm.conf, and the nodes that belong to each.

Whole NodeSets and ALL are named as they are: slurmctld itself follows their nodes. Nodes that are
named or selected one by one belong by a feature of their record, since slurmctld does not start on
a line that names a dynamic node which has no record yet.
Source: slurm.conf(5), PARTITION CONFIGURATION and NODE SET CONFIGURATION.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from penstock.api.penstock.partition import (
    KEYS,
    LabelSelector,
    LabelSelectorRequirement,
    Partition,
    WorkerSelector,
)
from penstock.api.penstock.validation import partition_problems
from penstock.api.slinky import names
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm import hostlist
from penstock.slurm.conf.document import Document, quoted
from penstock.slurm.partition.declaration import ALL, NODE_SET, PARTITION, feature, node_set
from penstock.slurm.state import Node

MOST_ABSENT = 100
"""Nodes without a record that are looked for."""


@dataclass(frozen=True, slots=True)
class Worker:
    """What Kubernetes says of the pod of a Slurm node."""

    pod_labels: Mapping[str, str] = field(default_factory=dict[str, str])
    node_labels: Mapping[str, str] = field(default_factory=dict[str, str])


def served(cluster: ClusterInputs) -> tuple[Partition, ...]:
    """The Partitions that are rendered, by Slurm's name: of those of one name the oldest."""
    found: dict[str, Partition] = {}
    taken = _taken(cluster)
    for one in sorted(cluster.partitions, key=_age):
        if one.slurm_name not in taken and not one.metadata.deleting:
            found.setdefault(one.slurm_name, one)
    return tuple(found[name] for name in sorted(found) if not list(partition_problems(found[name])))


def conflict(cluster: ClusterInputs, partition: Partition) -> str:
    """Who has the partition's name already, in words; empty when nobody has."""
    name = partition.slurm_name
    if (owner := _taken(cluster).get(name)) is not None:
        return owner
    for one in sorted(cluster.partitions, key=_age):
        if one.slurm_name == name and not one.metadata.deleting:
            same = one.metadata.name == partition.metadata.name
            return "" if same else f"Partition {one.metadata.name}"
    return ""


def invalid(cluster: ClusterInputs) -> frozenset[str]:
    """Names of partitions that are wrong as they are declared: what was stays."""
    return frozenset(
        one.slurm_name
        for one in cluster.partitions
        if not one.metadata.deleting and list(partition_problems(one))
    ) - frozenset(one.slurm_name for one in served(cluster))


def lines(cluster: ClusterInputs) -> list[str]:
    """The lines, sorted by partition; none without a Partition."""
    found: list[str] = []
    for one in served(cluster):
        name = one.slurm_name
        sets = set_names(cluster, one)
        if marked(cluster, one):
            found.append(f"NodeSet={node_set(name)} Feature={feature(name)}")
            sets = [*sets, node_set(name)]
        words = [f"PartitionName={name}", *([f"Nodes={','.join(sets)}"] if sets else [])]
        found.append(" ".join([*words, *_settings(one)]))
    return found


def missing(cluster: ClusterInputs, partition: Partition) -> list[str]:
    """NodeSets that a Partition names and that are not there, sorted."""
    there = {one.metadata.name for one in cluster.nodesets}
    return sorted(set(partition.spec.node_sets) - there)


def marked(cluster: ClusterInputs, partition: Partition) -> bool:
    """Whether some of its nodes belong to it one by one."""
    spec = partition.spec
    return spec.selector is not None or any(
        entry.startswith("-") or _host_words(cluster, entry.lstrip("+")) for entry in spec.nodes
    )


def set_names(cluster: ClusterInputs, partition: Partition) -> list[str]:
    """The node sets that belong to it as a whole, in Slurm's names, sorted."""
    spec = partition.spec
    if any(entry.startswith("-") for entry in spec.nodes):
        return []
    by_name = {one.metadata.name: names.partition_name(one) for one in cluster.nodesets}
    found = {by_name[name] for name in spec.node_sets if name in by_name}
    known = _sets(cluster)
    for entry in spec.nodes:
        found.update(word for word in hostlist.split(entry.lstrip("+")) if word in known)
    return [ALL] if ALL in found else sorted(found)


def members(
    cluster: ClusterInputs,
    partition: Partition,
    nodes: Mapping[str, Node],
    workers: Mapping[str, Worker],
) -> frozenset[str]:
    """The nodes that belong to it one by one, of those that slurmctld has a record of."""
    spec = partition.spec
    found = named(cluster, partition, nodes)
    if spec.selector is not None:
        selector = spec.selector
        found |= {
            name
            for name, node in nodes.items()
            if _selected(selector, node, workers.get(name, Worker()))
        }
        removed = _removed(cluster, spec.nodes, nodes)
        found -= removed
    return frozenset(found & nodes.keys())


def absent(cluster: ClusterInputs, partition: Partition, nodes: Mapping[str, Node]) -> list[str]:
    """The first nodes that it names one by one and of which slurmctld has no record, sorted.

    No more than MOST_ABSENT, since a message names fewer and an expression may stand for thousands.
    """
    known = _sets(cluster)
    entries = [entry for entry in partition.spec.nodes if not entry.startswith("-")]
    removed = ",".join(entry[1:] for entry in partition.spec.nodes if entry.startswith("-"))
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


def named(cluster: ClusterInputs, partition: Partition, nodes: Mapping[str, Node]) -> set[str]:
    """The nodes that it names one by one, of those that slurmctld has a record of."""
    spec = partition.spec
    whole = any(entry.startswith("-") for entry in spec.nodes)
    base = [entry for entry in spec.nodes if entry[:1] not in "+-"]
    steps = [entry for entry in spec.nodes if entry[:1] in "+-"]
    found: set[str] = set()
    if whole:
        by_name = {one.metadata.name: names.partition_name(one) for one in cluster.nodesets}
        for name in spec.node_sets:
            found |= _expanded(cluster, by_name.get(name, ""), nodes, sets=True)
    for entry in base:
        found |= _expanded(cluster, entry, nodes, sets=whole)
    for entry in steps:
        part = _expanded(cluster, entry[1:], nodes, sets=whole)
        found = found - part if entry.startswith("-") else found | part
    return found


def _removed(cluster: ClusterInputs, entries: Iterable[str], nodes: Mapping[str, Node]) -> set[str]:
    """What the entries take away in the end."""
    found: set[str] = set()
    for entry in entries:
        if entry[:1] in "+-":
            part = _expanded(cluster, entry[1:], nodes, sets=True)
            found = found | part if entry.startswith("-") else found - part
    return found


def _expanded(
    cluster: ClusterInputs, entry: str, nodes: Mapping[str, Node], *, sets: bool
) -> set[str]:
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


def _sets(cluster: ClusterInputs) -> dict[str, dict[str, str]]:
    """The node sets of slurm.conf, with the keys of their line in lower case."""
    found: dict[str, dict[str, str]] = {ALL: {}}
    for record in Document.parse(cluster.controller.spec.extra_conf).records(NODE_SET):
        found[record.name] = {one.key.lower(): one.value for one in record.settings}
    for one in cluster.nodesets:
        name = names.partition_name(one)
        found[name] = {"feature": name}
    return found


def _host_words(cluster: ClusterInputs, entry: str) -> list[str]:
    known = _sets(cluster)
    return [word for word in hostlist.split(entry) if word not in known]


def _taken(cluster: ClusterInputs) -> dict[str, str]:
    """Partitions that are declared elsewhere, and where."""
    found = {
        record.name: "extraConf of the Controller"
        for record in Document.parse(cluster.controller.spec.extra_conf).records(PARTITION)
    }
    for one in cluster.nodesets:
        if one.spec.partition and one.spec.partition.enabled:
            found[names.partition_name(one)] = f"NodeSet {one.metadata.name}"
    return found


def _age(partition: Partition) -> tuple[str, str]:
    meta = partition.metadata
    return meta.creation_timestamp or "", meta.name


def _settings(partition: Partition) -> list[str]:
    spec = partition.spec
    found: list[str] = []
    for name, key in KEYS.items():
        value: object = getattr(spec, name)
        if value is None or value in ((), ""):
            continue
        found.append(f"{key}={quoted(_written(value))}")
    return [*found, *(f"{key}={quoted(value)}" for key, value in sorted(spec.extra.items()))]


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, tuple):
        return ",".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    return str(value)


def _selected(selector: WorkerSelector, node: Node, worker: Worker) -> bool:
    return (
        set(selector.features) <= set(node.features)
        and _matches(selector.pod_labels, worker.pod_labels)
        and _matches(selector.node_labels, worker.node_labels)
    )


def _matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return True
    return selector.match_labels.items() <= labels.items() and all(
        _meets(one, labels) for one in selector.match_expressions
    )


def _meets(one: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    match one.operator:
        case "Exists":
            return one.key in labels
        case "DoesNotExist":
            return one.key not in labels
        case "In":
            return labels.get(one.key) in one.values
        case "NotIn":
            return labels.get(one.key) not in one.values
