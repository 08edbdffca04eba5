"""Slurm host lists: `cpu-[0-3,7],gpu[01-10]`, several brackets in one name (`r[1-2]n[1-3]`).

Source: slurm.conf(5), NodeName; scontrol(1), `show hostnames` and `show hostlist`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

LIMIT = 65536
"""Names one expression may stand for; Slurm has the same order of limit (MaxNodeCount)."""

_RANGE = re.compile(r"(\d+)(?:-(\d+))?\Z")
_TRAILING_NUMBER = re.compile(r"(.*?)(\d{1,9})\Z", re.DOTALL)


class HostListError(ValueError):
    """The text is not a host list; the message says where and what was expected."""


def expand(text: str) -> list[str]:
    """All names that `text` stands for, in the order written, doubles kept as Slurm keeps them.

    Raises HostListError when the brackets or ranges are wrong, or more than LIMIT names result.
    """
    names: list[str] = []
    for expression in split(text):
        for name in _expand_one(expression):
            names.append(name)
            if len(names) > LIMIT:
                raise HostListError(f"{text!r} stands for more than {LIMIT} names")
    return names


def compress(names: Iterable[str]) -> str:
    """The shortest usual form of a set of names, sorted by prefix and number; same set, same text.

    Only the last number of a name is put in brackets. `expand(compress(names))` gives the set back.
    """
    groups: dict[str, set[str]] = {}
    plain: set[str] = set()
    for name in names:
        if not name or any(c in "[], \t\n" for c in name):
            raise HostListError(f"{name!r} is not a host name")
        found = _TRAILING_NUMBER.match(name)
        if found is None:
            plain.add(name)
        else:
            groups.setdefault(found[1], set()).add(found[2])
    parts = [(prefix, _brackets(prefix, numbers)) for prefix, numbers in groups.items()]
    parts += [(name, name) for name in plain]
    return ",".join(part for _, part in sorted(parts))


def split(text: str) -> list[str]:
    """The expressions of a host list: separated by commas and blanks outside brackets.

    Raises HostListError for brackets that do not match.
    """
    parts: list[str] = []
    current = ""
    inside = False
    for character in text:
        if character == "[":
            if inside:
                raise HostListError(f"{text!r}: '[' inside '[...]'")
            inside = True
        elif character == "]":
            if not inside:
                raise HostListError(f"{text!r}: ']' without '['")
            inside = False
        if not inside and (character == "," or character.isspace()):
            parts.append(current)
            current = ""
        else:
            current += character
    if inside:
        raise HostListError(f"{text!r}: '[' is never closed")
    return [part for part in [*parts, current] if part]


def _expand_one(expression: str) -> Iterable[str]:
    pieces: list[Iterable[str]] = []
    for index, piece in enumerate(re.split(r"[\[\]]", expression)):
        pieces.append((piece,) if index % 2 == 0 else _numbers(piece, expression))
    return ("".join(chosen) for chosen in itertools.product(*pieces))


def _numbers(piece: str, expression: str) -> list[str]:
    """The numbers of one bracket; the width of a range's first number is the padding."""
    numbers: list[str] = []
    for part in piece.split(","):
        found = _RANGE.match(part.strip())
        if found is None:
            raise HostListError(
                f"{expression!r}: {part!r} is not a number or a range such as 1-4 or 01-10"
            )
        low, high = found[1], found[2] or found[1]
        if int(low) > int(high):
            raise HostListError(f"{expression!r}: range {part!r} runs backwards")
        if int(high) - int(low) >= LIMIT:
            raise HostListError(f"{expression!r} stands for more than {LIMIT} names")
        numbers += [str(n).zfill(len(low)) for n in range(int(low), int(high) + 1)]
    return numbers


def _brackets(prefix: str, numbers: set[str]) -> str:
    ranges: list[tuple[str, str]] = []
    for number in sorted(numbers, key=lambda n: (int(n), len(n))):
        if ranges:
            low, high = ranges[-1]
            if str(int(high) + 1).zfill(len(low)) == number:
                ranges[-1] = (low, number)
                continue
        ranges.append((number, number))
    if len(numbers) == 1:
        return prefix + ranges[0][0]
    texts = (low if low == high else f"{low}-{high}" for low, high in ranges)
    return f"{prefix}[{','.join(texts)}]"
