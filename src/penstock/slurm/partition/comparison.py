"""Where a partition in slurmctld is not what slurm.conf declares."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.slurm import hostlist
from penstock.slurm.conf.document import Document, Record
from penstock.slurm.partition.declaration import (
    ALL,
    NODE_SET,
    NODES,
    PARTITION,
    Difference,
    PartitionLine,
    partition_lines,
)
from penstock.slurm.partition.keys import BY_KEY, canonical
from penstock.slurm.rest.wire import Partition
from penstock.slurm.state import Node


def differences(
    line: PartitionLine, live: Partition, nodes: frozenset[str] | None = None
) -> tuple[Difference, ...]:
    """The keys that differ, in the order of the table, `Nodes` last.

    What slurmrestd does not show, and values that cannot be read, do not count; without `nodes`,
    the nodes that it should have, those do not either.
    """
    given = {key: value for key, value in line.keys.items() if key != "nodes"}
    try:
        wanted = canonical(given)
    except ValueError:
        wanted = {}
    found: list[Difference] = []
    for key, value in wanted.items():
        row = BY_KEY.get(key)
        shown = row.live(live) if row is not None and row.live is not None else None
        if row is not None and shown is not None and shown != value:
            found.append(Difference(row.key, shown, value))
    if nodes is not None and (shown := frozenset(hostlist.expand(live.nodes.configured))) != nodes:
        found.append(Difference(NODES, live.nodes.configured, hostlist.compress(nodes)))
    return tuple(found)


def expected_nodes(
    text: str, name: str, nodes: Mapping[str, Node], members: Mapping[str, frozenset[str]]
) -> frozenset[str] | None:
    """The nodes that a partition of a slurm.conf has, of those there are; None if it is not there.

    `members` are the nodes that some node sets are to have, whatever their features are by now.
    Raises HostListError.
    """
    document = Document.parse(text)
    line = document.record(PARTITION, name)
    sets = {one.name: one for one in document.records(NODE_SET)}
    return _expected(line, sets, nodes, members) if line is not None else None


def _expected(
    line: Record,
    sets: Mapping[str, Record],
    nodes: Mapping[str, Node],
    members: Mapping[str, frozenset[str]],
) -> frozenset[str]:
    found: set[str] = set()
    for word in hostlist.split(line.get(NODES) or ""):
        if word.upper() == ALL:
            found |= nodes.keys()
        elif word in members:
            found |= members[word]
        elif word in sets:
            feature = sets[word].get("Feature")
            found |= {n for n, node in nodes.items() if feature and feature in node.features}
            found |= hostlist.among(sets[word].get("Nodes") or "", nodes.keys())
        else:
            found |= hostlist.among(word, nodes.keys())
    return frozenset(found)


def default_partition(text: str) -> str | None:
    """The partition of jobs that name none: of several slurmctld takes the last one."""
    found = [
        one.name
        for one in Document.parse(text).records(PARTITION)
        if (one.get("Default") or "").lower() in ("yes", "y", "true", "1")
    ]
    return found[-1] if found else None


def drifts(
    text: str,
    records: Mapping[str, Partition],
    nodes: Mapping[str, Node] | None,
    members: Mapping[str, frozenset[str]],
) -> dict[str, tuple[Difference, ...]]:
    """By partition the differences between slurmctld and a slurm.conf; equal ones are left out.

    Without `nodes` the nodes of partitions are not compared. Raises HostListError.
    """
    found: dict[str, tuple[Difference, ...]] = {}
    wanted, first, document = partition_lines(text), default_partition(text), Document.parse(text)
    lines = {one.name: one for one in document.records(PARTITION)}
    sets = {one.name: one for one in document.records(NODE_SET)}
    for name, one in wanted.items():
        live = records.get(name)
        if live is None:
            found[name] = (Difference(PARTITION, "", name),)
            continue
        there = _expected(lines[name], sets, nodes, members) if nodes is not None else None
        found[name] = tuple(
            d for d in differences(one, live, there) if d.key != "Default" or first in (None, name)
        )
    for name in records.keys() - wanted.keys():
        found[name] = (Difference(PARTITION, name, ""),)
    return {name: many for name, many in found.items() if many}
