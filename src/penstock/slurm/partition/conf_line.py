"""Slurm's partitions written back as PartitionName lines: one word changed, or a whole line made.

What is not changed stays byte for byte: other lines, comments, spelling, the order of words.
Source: slurm.conf(5), PARTITION CONFIGURATION.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.slurm.conf.document import ConfError, Document, Line, Record, Setting
from penstock.slurm.partition.declaration import (
    DEFAULT,
    NODES,
    PARTITION,
    Difference,
    partition_lines,
)
from penstock.slurm.partition.keys import BY_KEY, ROWS, canonical
from penstock.slurm.partition.line_words import edited, is_line_of
from penstock.slurm.rest.wire import Partition

_PRIORITIES = ("PriorityJobFactor", "PriorityTier")


def with_differences(text: str, name: str, found: Iterable[Difference]) -> tuple[str, list[str]]:
    """Declare a partition in a slurm.conf as slurmctld has it; also what the file cannot express.

    A difference of `Nodes` has the value to be written in `live`. The text is unchanged if there
    is anything that it cannot express, or no line of that name.
    """
    differences = tuple(found)
    lines = list(Document.parse(text).lines)
    places = [i for i, line in enumerate(lines) if is_line_of(line, name)]
    if not places:
        return text, [f"there is no PartitionName={name} line"]
    place = places[-1]
    has_defaults = any(is_line_of(line, DEFAULT) for line in lines)
    words = _words(lines[place], differences, has_defaults=has_defaults)
    try:
        changed = edited(lines[place].text, words)
        new = "".join(changed if i == place else line.text for i, line in enumerate(lines))
        left = _left(new, name, differences)
        if len(Document.parse(new).lines) != len(lines):
            left = [f"the line of partition {name} cannot be changed by itself"]
    except ValueError as error:
        return text, [f"slurm.conf cannot express {error}"]
    return (text, left) if left else (new, [])


def without(text: str, name: str) -> str:
    """A slurm.conf in which the partition is not declared."""
    lines = Document.parse(text).lines
    return "".join(line.text for line in lines if not is_line_of(line, name))


def with_line(text: str, line: str) -> str:
    """A slurm.conf with one more line at its end."""
    gap = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{gap}{line}\n"


def line_of(live: Partition, nodes: str) -> str:
    """The line that declares a partition as slurmctld has it, with this value of `Nodes`.

    Raises ConfError for a value that cannot be written, and if slurmrestd omits fields.
    """
    found = [Setting("Nodes", nodes)] if nodes else []
    shown = {row.key: row.live(live) for row in ROWS if row.live is not None}
    unknown = [key for key, value in shown.items() if value is None]
    if unknown:
        raise ConfError(f"this version of slurmrestd does not report {', '.join(unknown)}")
    for row in ROWS:
        value = shown.get(row.key)
        if value and value != row.absent:
            found.append(Setting(row.key, value))
    return Record(PARTITION, live.name, tuple(found)).render()


def _words(line: Line, found: Iterable[Difference], *, has_defaults: bool) -> dict[str, str | None]:
    """What to write for differences; older spellings of the same key go."""
    given = {one.key.lower(): one.value for one in line.settings}
    words: dict[str, str | None] = {}
    for one in found:
        row = BY_KEY.get(one.key.lower())
        absent = row is not None and one.live == row.absent and not has_defaults
        words[one.key] = None if absent or not one.live else one.live
        if one.key in _PRIORITIES and "priority" in given:
            words["Priority"] = None
            for key in _PRIORITIES:
                words.setdefault(key, given["priority"])
        if one.key == "OverSubscribe" and "shared" in given:
            words["Shared"] = None
        if one.key == "Exclusive":
            words |= {"ExclusiveUser": None, "ExclusiveTopo": None}
            for key in ("OverSubscribe", "Shared"):
                if given.get(key.lower(), "").upper() == "EXCLUSIVE":
                    words.setdefault(key, None)
    return words


def _left(new: str, name: str, found: Iterable[Difference]) -> list[str]:
    """The differences that a changed text does not express."""
    line = partition_lines(new).get(name)
    if line is None:
        raise ConfError(f"partition {name}")
    has = canonical({key: value for key, value in line.keys.items() if key != NODES.lower()})
    has[NODES.lower()] = line.keys.get(NODES.lower(), "")
    return [
        f"slurm.conf cannot express {one.key}={one.live} here"
        for one in found
        if has.get(one.key.lower(), "") != one.live
    ]
