"""Partitions that are declared no more and stay in slurm.conf, drained, until no job is in them.

slurmctld ends every job of a partition that its file does not have, running or pending, whenever it
reads that file: at a reconfigure as at a start. A pending job that names another partition as well
goes on in that one. Names are case-sensitive. Seen with Slurm 26.05.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

from penstock.slurm import hostlist
from penstock.slurm.conf.document import Document, Line, Record, Setting, is_writable
from penstock.slurm.hostlist import HostListError
from penstock.slurm.partition.declaration import (
    NODE_SET,
    NODES,
    PARTITION,
    PartitionLine,
    partition_lines,
)

NODE_NAME = "NodeName"
STATE = "state"
_DRAINED = {"UP": "DRAIN", "DOWN": "INACTIVE"}
"""States by which no new job enters and pending ones start as before. Source: slurm.conf(5)."""
_RECORDS = frozenset({PARTITION.lower(), NODE_SET.lower(), NODE_NAME.lower()})
_GOES = frozenset({"default", STATE})
"""Keys that a retained line leaves out: a removed partition is nobody's default."""


def removed_partitions(in_effect: str, wanted: str) -> frozenset[str]:
    """Partitions of the slurm.conf in effect that another one does not declare."""
    return frozenset(partition_lines(in_effect).keys() - partition_lines(wanted).keys())


def is_drained(text: str, name: str) -> bool:
    """Whether no new job may enter the partition that a slurm.conf declares."""
    found = partition_lines(text).get(name)
    return found is not None and _state(found) in _DRAINED.values()


@lru_cache(maxsize=64)
def retained_lines(in_effect: str, wanted: str, freed: frozenset[str]) -> tuple[str, ...]:
    """The lines that `wanted` lacks for the partitions that have to stay.

    These are all that it removes but those that are `freed`, with the nodes and node sets that
    they name. Each line has all its keys, so that DEFAULT lines after it change nothing. The
    function is idempotent.
    """
    names = sorted(removed_partitions(in_effect, wanted) - freed)
    if not names:
        return ()
    before, after = Document.parse(in_effect), Document.parse(wanted)
    spelt = {one.key.lower(): one.key for r in before.records(PARTITION) for one in r.settings}
    kept = (_line(partition_lines(in_effect)[name], spelt) for name in names)
    needed = _needed(before, after, names, partition_lines(in_effect))
    return tuple(_written((*needed, *kept)))


def _written(records: Iterable[Record]) -> Iterator[str]:
    """Lines of records, without a value that was written by hand and cannot be again (a quote).

    A partition stays for its jobs, even if a key of it cannot.
    """
    for one in records:
        if is_writable(one.name):
            kept = tuple(setting for setting in one.settings if is_writable(setting.value))
            yield Record(one.key, one.name, kept).render()


def records_of(text: str) -> str:
    """The partitions, node sets and nodes of a slurm.conf, and nothing else of it."""
    lines = Document.parse(text).lines
    return "".join(
        one.text if one.text.endswith("\n") else f"{one.text}\n" for one in lines if _is_record(one)
    )


def without_records(text: str) -> str:
    """A slurm.conf without its partitions, node sets and nodes."""
    return "".join(one.text for one in Document.parse(text).lines if not _is_record(one))


def _is_record(line: Line) -> bool:
    return bool(line.settings) and line.settings[0].key.lower() in _RECORDS


def _state(found: PartitionLine) -> str:
    given = found.keys.get(STATE, "UP").upper()
    return _DRAINED.get(given, given)


def _line(found: PartitionLine, spelt: Mapping[str, str]) -> Record:
    # An empty value is Slurm's default, and cannot be written again.
    said = [
        Setting(spelt[key], value)
        for key, value in found.keys.items()
        if key not in _GOES and value
    ]
    return Record(PARTITION, found.name, (*said, Setting("State", _state(found))))


def _needed(
    before: Document, after: Document, names: Collection[str], there: dict[str, PartitionLine]
) -> Iterator[Record]:
    """Node sets and nodes that these partitions name and that would be gone."""
    words = {w for name in names for w in _words(there[name].keys.get(NODES.lower(), ""))}
    known = {one.name for one in after.records(NODE_SET)}
    yielded: set[str] = set()
    for one in before.records(NODE_SET):
        if one.name in words and one.name not in known | yielded:
            yielded.add(one.name)
            words |= set(_words(one.get(NODES) or ""))
            yield one
    kept = _hosts(one.name for one in after.records(NODE_NAME))
    named = _hosts(words - yielded)
    for one in before.records(NODE_NAME):
        hosts = _hosts([one.name])
        if hosts & named and not hosts & kept:
            yield one


def _words(nodes: str) -> list[str]:
    try:
        return hostlist.split(nodes)
    except HostListError:
        return []


def _hosts(words: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for word in words:
        try:
            found.update(hostlist.expand(word))
        except HostListError:
            continue
    return found
