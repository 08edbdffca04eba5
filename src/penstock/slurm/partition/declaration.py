"""Partitions as slurm.conf declares them: read from its text, compared, and put back one by one.

Source: slurm.conf(5), PARTITION CONFIGURATION. A line with the name DEFAULT gives values to the
lines after it, and each further one adds to them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from penstock.slurm.conf.document import Document, Record, diff
from penstock.slurm.conf.includes import SLURM_CONF, included, resolved

PARTITION = "PartitionName"
NODE_SET = "NodeSet"
NODES = "Nodes"
ALL = "ALL"
DEFAULT = "DEFAULT"
PREFIX = "penstock"
MOST_DEFAULTS = 64
"""Keys that DEFAULT lines may give to others; Slurm has fewer, and rejects any other key. Each
partition after these lines gets all of them."""


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """One partition: its keys in lower case with the values as written, DEFAULT lines included."""

    name: str
    keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """What differs of one partition. `old` is None for a new one, `new` for one that goes."""

    name: str
    old: PartitionLine | None
    new: PartitionLine | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A key of one partition whose value in slurmctld is not the declared one."""

    key: str
    live: str
    declared: str

    def __str__(self) -> str:
        return f"{self.key} is {self.live or 'empty'}, declared {self.declared or 'empty'}"


@dataclass(frozen=True, slots=True)
class RemovedKey:
    """A key that a line had and has no more, what it was, and what holds in its place.

    `now` is empty for a key without a value of its own, `inherited` if it is a DEFAULT line's.
    """

    key: str
    was: str
    now: str
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class Adoption:
    """The merge patch of a spec that declares what Slurm has, and by partition what it cannot."""

    patch: Mapping[str, Any]
    left: Mapping[str, str] = field(default_factory=dict[str, str])


def node_set(partition: str) -> str:
    """Name of the node set of the nodes that a Partition names one by one.

    slurmctld does not start when a partition names a dynamic node that has no record yet; a node
    set by feature may be empty.
    """
    return f"{PREFIX}-{partition}"


def feature(partition: str) -> str:
    """The feature by which a node belongs to that node set."""
    return f"{PREFIX}/{partition}"


def partition_lines(text: str) -> dict[str, PartitionLine]:
    """The partitions of a slurm.conf by name."""
    return dict(_partition_lines(text))


@lru_cache(maxsize=16)
def _partition_lines(text: str) -> Mapping[str, PartitionLine]:
    defaults: dict[str, str] = {}
    found: dict[str, PartitionLine] = {}
    for record in Document.parse(text).records(PARTITION):
        keys = {one.key.lower(): one.value for one in record.settings}
        if record.name.upper() == DEFAULT:
            defaults = dict(islice((defaults | keys).items(), MOST_DEFAULTS))
            continue
        found[record.name] = PartitionLine(record.name, defaults | keys)
    return found


@lru_cache(maxsize=16)
def partition_changes(old_text: str, new_text: str) -> tuple[Change, ...]:
    """The partitions that differ, sorted by name; comments and spelling do not count."""
    old, new = partition_lines(old_text), partition_lines(new_text)
    return tuple(
        Change(name, old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


@lru_cache(maxsize=16)
def live_only(old_text: str, new_text: str) -> bool:
    """Whether two texts of slurm.conf differ in nothing but what can be changed in slurmctld.

    These are PartitionName lines, and the node sets that are there for one partition only.
    """
    return all(
        one.key == PARTITION.lower()
        or (one.key == NODE_SET.lower() and (one.name or "").startswith(f"{PREFIX}-"))
        for one in diff(Document.parse(old_text), Document.parse(new_text))
    )


def differs_in_partitions(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Whether two sets of files differ in nothing but what can be changed in slurmctld.

    Files that slurm.conf includes count with it. False without a slurm.conf.
    """
    if SLURM_CONF not in old or SLURM_CONF not in new:
        return False
    conf = {SLURM_CONF, *included(old), *included(new)}
    others = old.keys() | new.keys()
    if any(old.get(name) != new.get(name) for name in others - conf):
        return False
    return live_only(resolved(old), resolved(new))


def copy_partitions(old_text: str, new_text: str, names: Collection[str]) -> str:
    """`new_text` in which the partitions of these names are as they are in `old_text`."""
    old, document = Document.parse(old_text), Document.parse(new_text)
    for name in sorted(names):
        document = _put(document, old.record(PARTITION, name), PARTITION, name)
        mark = node_set(name)
        before = old.record(NODE_SET, mark)
        if before is not None or document.record(NODE_SET, mark) is not None:
            document = _put(document, before, NODE_SET, mark)
    return document.render()


def _put(document: Document, record: Record | None, key: str, name: str) -> Document:
    return document.remove_record(key, name) if record is None else document.set_record(record)
