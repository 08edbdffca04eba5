"""Slurm's partitions written back as PartitionName lines: one word changed, or a whole line made.

What is not changed stays byte for byte: other lines, comments, spelling, the order of words.
Source: slurm.conf(5), PARTITION CONFIGURATION.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from penstock.slurm.conf.document import ConfError, Document, Line, Record, Setting, quoted
from penstock.slurm.partition.declaration import (
    DEFAULT,
    NODES,
    PARTITION,
    Difference,
    partition_lines,
)
from penstock.slurm.partition.keys import BY_KEY, ROWS, canonical
from penstock.slurm.rest.wire import Partition

Words = Mapping[str, str | None]
"""Values by the key as slurm.conf spells it; None takes a key away."""

_WORD = re.compile(r'(\s*+)([\w.]++)(\s*+=\s*+)("[^"\n]*"|(?:[^\s\\#]++|\\[^\n])++)')
_NO_WORD = re.compile(r"\s*+[\w.]++|\s++|.", re.DOTALL)
"""What is passed over where no word begins: all of it, or its end would be read again and again."""
_COMMENT = re.compile(r"(?<!\\)#")
_PRIORITIES = ("PriorityJobFactor", "PriorityTier")


def with_differences(text: str, name: str, found: Iterable[Difference]) -> tuple[str, list[str]]:
    """Declare a partition in a slurm.conf as slurmctld has it; also what the file cannot express.

    A difference of `Nodes` has the value to be written in `live`. The text is unchanged if there
    is anything that it cannot express, or no line of that name.
    """
    differences = tuple(found)
    lines = list(Document.parse(text).lines)
    places = [i for i, line in enumerate(lines) if _named(line, name)]
    if not places:
        return text, [f"there is no PartitionName={name} line"]
    place = places[-1]
    has_defaults = any(_named(line, DEFAULT) for line in lines)
    words = _words(lines[place], differences, has_defaults=has_defaults)
    try:
        changed = _edited(lines[place].text, words)
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
    return "".join(line.text for line in lines if not _named(line, name))


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


def _named(line: Line, name: str) -> bool:
    if not line.settings:
        return False
    first = line.settings[0]
    same = first.value.upper() == DEFAULT if name == DEFAULT else first.value == name
    return first.key.lower() == PARTITION.lower() and same


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


def _edited(raw: str, words: Words) -> str:
    """The text of one line with these words. Raises ConfError."""
    left = {key.lower(): (key, value) for key, value in words.items()}
    comment = _COMMENT.search(raw)
    body = raw[: comment.start()] if comment else raw.rstrip("\r\n")
    tail = raw[len(body) :]
    blank = body[len(body.rstrip()) :]
    seen: set[str] = set()

    def one(found: re.Match[str]) -> str:
        gap, key, equals, _ = found.groups()
        if key.lower() not in left:
            return found[0]
        value = left[key.lower()][1]
        if value is None or key.lower() in seen:
            # The line goes on after a line break: that stays.
            return gap if "\n" in gap else ""
        seen.add(key.lower())
        return f"{gap}{key}{equals}{quoted(value)}"

    text, at, parts = body.rstrip(), 0, list[str]()
    while at < len(text):
        if (found := _WORD.match(text, at)) is not None:
            parts.append(one(found))
        elif (found := _NO_WORD.match(text, at)) is not None:
            parts.append(found[0])
        at = found.end() if found is not None else len(text)
    changed = "".join(parts)
    more = [
        f" {k}={quoted(v)}" for low, (k, v) in left.items() if v is not None and low not in seen
    ]
    return "".join([changed, *more, blank, tail])


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
