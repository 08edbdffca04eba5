"""Words of one PartitionName line, changed in place.

What is not changed stays byte for byte: comments, spelling, the order of words.
Source: slurm.conf(5), PARTITION CONFIGURATION.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from penstock.slurm.conf.document import ConfError, Document, Line, quoted
from penstock.slurm.partition.declaration import DEFAULT, PARTITION

Words = Mapping[str, str | None]
"""Values by the key as slurm.conf spells it; None takes a key away."""

_WORD = re.compile(r'(\s*+)([\w.]++)(\s*+=\s*+)("[^"\n]*"|(?:[^\s\\#]++|\\[^\n])++)')
_NO_WORD = re.compile(r"\s*+[\w.]++|\s++|.", re.DOTALL)
"""What is passed over where no word begins: all of it, or its end would be read again and again."""
_COMMENT = re.compile(r"(?<!\\)#")


def with_words(text: str, words: Mapping[str, Words]) -> str:
    """A slurm.conf in which the last line of each of these partitions has its words.

    A line stays as it is when a value cannot be written, or would change other lines.
    """
    lines = list(Document.parse(text).lines)
    places = {
        line.settings[0].value: i
        for i, line in enumerate(lines)
        if line.settings and line.settings[0].key.lower() == PARTITION.lower()
    }
    raw = [line.text for line in lines]
    for name, place in places.items():
        if name not in words:
            continue
        with suppress(ConfError):
            changed = edited(raw[place], words[name])
            if len(Document.parse(changed).lines) == 1:
                raw[place] = changed
    return "".join(raw)


def is_line_of(line: Line, name: str) -> bool:
    """Whether it is a PartitionName line of that name; DEFAULT ignores case."""
    if not line.settings:
        return False
    first = line.settings[0]
    same = first.value.upper() == DEFAULT if name == DEFAULT else first.value == name
    return first.key.lower() == PARTITION.lower() and same


def edited(raw: str, words: Words) -> str:
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
