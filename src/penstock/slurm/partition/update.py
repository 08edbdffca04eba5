"""From a changed PartitionName line to the one call that changes the partition in slurmctld."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from penstock.slurm import hostlist
from penstock.slurm.partition.declaration import PARTITION, Change, Difference, PartitionLine
from penstock.slurm.partition.keys import BY_KEY, Body, canonical, differing, merged

_NODES = "nodes"


@dataclass(frozen=True, slots=True)
class Update:
    """Create or update a partition: the body of `POST partitions/`."""

    name: str
    body: Body


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a partition."""

    name: str


@dataclass(frozen=True, slots=True)
class ByFile:
    """slurmrestd cannot make this change: slurmctld has to read its file again."""

    name: str
    why: str


Call = Update | Delete | ByFile


def call(
    change: Change, members: Mapping[str, Iterable[str]], drifted: Iterable[Difference] = ()
) -> Call:
    """What to ask of slurmrestd for one change.

    `members` are the nodes of those node sets that slurmctld may not know yet. Keys that
    `drifted` in slurmctld are sent again.
    """
    name = change.name
    if change.new is None:
        return Delete(name)
    try:
        new = canonical(_known(change.new))
        old = canonical(_known(change.old) if change.old is not None else {})
        old |= {one.key.lower(): one.live for one in drifted if one.key.lower() in BY_KEY}
        nodes = configured(change.new.keys.get(_NODES, ""), members)
    except ValueError as error:
        # HostListError is one. slurmctld judges the file, and its words reach the user.
        return ByFile(name, f"slurmrestd cannot be given {error}")
    unset: list[Body] = []
    given: list[Body] = []
    for key in differing(old, new):
        row = BY_KEY.get(key)
        if row is None or row.body is None:
            return ByFile(name, f"slurmrestd cannot set {row.key if row else key}")
        absent = new[key] == row.absent
        if absent and not row.undo:
            return ByFile(name, f"slurmrestd cannot take {row.key} back")
        (unset if absent else given).append(row.body(new[key]))
    body = reduce(merged, [*unset, *given], Body())
    _one_memory(body)
    before = change.old.keys.get(_NODES, "") if change.old is not None else ""
    wanted = change.new.keys.get(_NODES, "")
    if change.old is None:
        # slurmctld gives a new partition another least number of nodes than a line of its file.
        body = merged({"minimums": {"nodes": 0}}, body)
    if change.old is None or before != wanted:
        body = merged(body, {"nodes": {"configured": nodes}})
    return Update(name, {"name": name, **body})


def put_back(
    name: str,
    found: Iterable[Difference],
    line: PartitionLine,
    members: Mapping[str, Iterable[str]],
) -> Call:
    """What to ask of slurmrestd so that these differences go."""
    body = Body()
    for one in found:
        if one.key == PARTITION:
            return call(Change(name, None, line), members)
        if one.key == "Nodes":
            wanted = configured(line.keys.get(_NODES, ""), members)
            body = merged(body, {"nodes": {"configured": wanted}})
            continue
        row = BY_KEY[one.key.lower()]
        if row.body is None or (one.declared == row.absent and not row.undo):
            return ByFile(name, f"slurmrestd cannot take {row.key} back")
        body = merged(body, row.body(one.declared))
    _one_memory(body)
    return Update(name, {"name": name, **body})


def configured(nodes: str, members: Mapping[str, Iterable[str]]) -> str:
    """A `Nodes` value in which some node sets are replaced by their nodes."""
    words: list[str] = []
    named: set[str] = set()
    for word in hostlist.split(nodes):
        if word in members:
            named.update(members[word])
        else:
            words.append(word)
    return ",".join([*words, *([hostlist.compress(named)] if named else [])])


def _known(declared: PartitionLine) -> dict[str, str]:
    return {key: value for key, value in declared.keys.items() if key != _NODES}


def _one_memory(body: Body) -> None:
    """Of memory for each CPU and for each node slurmctld keeps one: the one that is given."""
    for place in ("defaults", "maximums"):
        found: Body = body.get(place, {})
        per_node: Body = found.get("partition_memory_per_node", {})
        if "partition_memory_per_cpu" in found and not per_node.get("number"):
            found.pop("partition_memory_per_node", None)
