"""Declare what slurmctld has of partitions, where they are declared in words of slurm.conf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from penstock.slurm import hostlist
from penstock.slurm.conf.document import ConfError
from penstock.slurm.partition.conf_line import line_of, with_differences, with_line, without
from penstock.slurm.partition.declaration import ALL, NODES, PARTITION, Adoption, Difference
from penstock.slurm.rest.wire import Partition

Found: TypeAlias = Mapping[str, tuple[Difference, ...]]
"""Differences by partition."""
Sets: TypeAlias = Mapping[str, frozenset[str]]
"""Nodes by the name of a node set that a PartitionName line may name."""

_BY_NAME = (
    "its line names nodes one by one, and slurmctld does not start if it has no record of one of "
    "them: declare them in a Partition"
)


def into_nodeset(config: str, found: Found) -> Adoption:
    """For a NodeSet's own partition."""
    patch: dict[str, Any] = {}
    left: dict[str, str] = {}
    for name, differences in found.items():
        if differences[0].key == PARTITION:
            patch["partition"] = {"enabled": False}
            continue
        if any(one.key == NODES for one in differences):
            left[name] = "the nodes of this partition are those of the NodeSet: use a Partition"
            continue
        start = f"{PARTITION}={name} "
        text, wrong = with_differences(f"{start}{config}", name, differences)
        if wrong:
            left[name] = "; ".join(wrong)
        else:
            patch["partition"] = {"config": text[len(start) :].strip() or None}
    return Adoption(patch, left)


def into_extra_conf(
    text: str, found: Found, records: Mapping[str, Partition], sets: Sets
) -> Adoption:
    """For a Controller: the lines of its extraConf, and one more for each undeclared partition."""
    new = text
    left: dict[str, str] = {}
    for name in sorted(found):
        differences = found[name]
        live = records.get(name)
        if differences[0].key == PARTITION and not differences[0].live:
            new = without(new, name)
            continue
        if live is None:
            left[name] = "slurmctld does not have it any more"
            continue
        nodes = _nodes(live, sets)
        if nodes is None and any(one.key in (NODES, PARTITION) for one in differences):
            left[name] = _BY_NAME
        elif differences[0].key == PARTITION:
            try:
                new = with_line(new, line_of(live, nodes or ""))
            except ConfError as error:
                left[name] = str(error)
        else:
            written = [replace(d, live=nodes or "") if d.key == NODES else d for d in differences]
            new, wrong = with_differences(new, name, written)
            if wrong:
                left[name] = "; ".join(wrong)
    return Adoption({"extraConf": new} if new != text else {}, left)


def _nodes(live: Partition, sets: Sets) -> str | None:
    """Node sets that have exactly the nodes of a partition; None when there are none such."""
    try:
        there = frozenset(hostlist.expand(live.nodes.configured))
        words = hostlist.split(live.node_sets)
    except hostlist.HostListError:
        return None
    if not there and not words:
        return ""
    if words and all(word in sets for word in words):
        named: frozenset[str] = frozenset[str]().union(*(sets[word] for word in words))
        if named == there:
            return ",".join(words)
    # ALL would bring nodes that come later, which nobody has asked for.
    inside = [name for name in sorted(sets.keys() - {ALL}) if sets[name] and sets[name] <= there]
    for name in inside:
        if sets[name] == there:
            return name
    whole: frozenset[str] = frozenset[str]().union(*(sets[name] for name in inside))
    return ",".join(inside) if there and whole == there else None
