"""Slurm host lists: `cpu-[0-3,7],gpu[01-10]`, several brackets in one name (`r[1-2]n[1-3]`).

Whoever may write a partition, a gres.conf or a node's name writes these: each function takes time
by the length of the text and of its result, and counts before it builds.
Source: slurm.conf(5), NodeName; scontrol(1), `show hostnames` and `show hostlist`.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

LIMIT = 65536
"""Names one expression may stand for; Slurm has the same order of limit (MaxNodeCount)."""

_DIGITS = 18
"""Of a number in brackets; Slurm keeps them in 64 bits."""
_SHOWN = 80
"""Characters of a text that a message quotes."""
_RANGE = re.compile(rf"([0-9]{{1,{_DIGITS}}})(?:-([0-9]{{1,{_DIGITS}}}))?\Z")
_BRACKET = re.compile(r"[\[\]]")
_EXPRESSION = re.compile(r"(?:[^\[\],\s]++|\[[^\[\]]*+\])++")
_NUMERALS = "0123456789"
_SORTED_DIGITS = 9
"""Digits of a name's last number that `compress` reads as a number."""


class HostListError(ValueError):
    """The text is not a host list; the message names the position and what was expected."""


@dataclass(frozen=True, slots=True)
class _Range:
    """Numbers from `low` to `high`, padded with zeros to a width."""

    low: int
    high: int
    width: int

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    def numbers(self) -> Iterator[str]:
        return (str(n).zfill(self.width) for n in range(self.low, self.high + 1))

    def has(self, number: str) -> bool:
        """Whether a text of digits is one of its numbers, as it writes them."""
        value = int(number)
        return self.low <= value <= self.high and str(value).zfill(self.width) == number


class _Numbers:
    """The ranges of one bracket."""

    def __init__(self, piece: str, expression: str) -> None:
        self.ranges = [_range(part, expression) for part in piece.split(",")]
        self.size = sum(one.size for one in self.ranges)

    @cached_property
    def longest(self) -> int:
        """Digits of the longest number."""
        return max(len(str(one.high).zfill(one.width)) for one in self.ranges)

    @cached_property
    def _sorted(self) -> tuple[list[_Range], list[int], list[int]]:
        """The ranges by their lowest number, these, and how far all up to each one reach."""
        ranges = sorted(self.ranges, key=lambda one: one.low)
        reach = itertools.accumulate((one.high for one in ranges), max)
        return ranges, [one.low for one in ranges], list(reach)

    def has(self, number: str) -> bool:
        value = int(number)
        ranges, lows, reach = self._sorted
        at = bisect.bisect_right(lows, value) - 1
        while at >= 0 and reach[at] >= value:
            if ranges[at].has(number):
                return True
            at -= 1
        return False

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(one.numbers() for one in self.ranges)


def expand(text: str) -> list[str]:
    """All names that `text` stands for, in the order written, doubles kept as Slurm keeps them.

    Raises HostListError when the brackets or ranges are wrong, or more than LIMIT names result;
    then nothing was built.
    """
    return list(each(text))


def each(text: str) -> Iterator[str]:
    """The names of `expand`, one after the other. Raises what it raises, before the first."""
    return itertools.chain.from_iterable(map(_names, _counted(text)[0]))


def count(text: str) -> int:
    """How many names a text stands for. Raises HostListError, also for more than LIMIT."""
    return _counted(text)[1]


def _counted(text: str) -> tuple[list[tuple[_Piece, ...]], int]:
    """The pieces of each expression, and how many names they make. Raises what `count` does."""
    total = 0
    every: list[tuple[_Piece, ...]] = []
    for expression in split(text):
        pieces = _pieces(expression)
        size = 1
        for piece in pieces:
            if isinstance(piece, _Numbers):
                size *= piece.size
            if total + size > LIMIT:
                raise HostListError(f"{_shown(text)} stands for more than {LIMIT} names")
        total += size
        every.append(pieces)
    return every, total


def among(text: str, names: Collection[str]) -> set[str]:
    """Those of some names that a text stands for. Raises HostListError.

    What stands for many more names than there are is compared with each instead of being built.
    """
    found: set[str] = set()
    for expression in split(text):
        (pieces,), size = _counted(expression)
        if size <= 2 * len(names):
            found.update(name for name in _names(pieces) if name in names)
        else:
            found.update(name for name in names if _is_of(name, pieces))
    return found


def contains(text: str, name: str) -> bool:
    """Whether a text stands for a name, among others. Raises HostListError."""
    return any(_is_of(name, pieces) for pieces in _counted(text)[0])


def compress(names: Iterable[str]) -> str:
    """The shortest usual form of a set of names, sorted by prefix and number; same set, same text.

    Only the last number of a name is put in brackets. `expand(compress(names))` equals `names`.
    """
    groups: dict[str, set[str]] = {}
    plain: set[str] = set()
    for name in names:
        if not name or any(c in "[], \t\n" for c in name):
            raise HostListError(f"{_shown(name)} is not a host name")
        digits = min(len(name) - len(name.rstrip(_NUMERALS)), _SORTED_DIGITS)
        if digits:
            groups.setdefault(name[:-digits], set()).add(name[-digits:])
        else:
            plain.add(name)
    parts = [(prefix, _brackets(prefix, numbers)) for prefix, numbers in groups.items()]
    parts += [(name, name) for name in plain]
    return ",".join(part for _, part in sorted(parts))


def split(text: str) -> list[str]:
    """The expressions of a host list: separated by commas and blanks outside brackets.

    Raises HostListError for brackets that do not match.
    """
    inside = False
    for bracket in _BRACKET.findall(text):
        if (bracket == "[") == inside:
            wrong = "'[' inside '[...]'" if inside else "']' without '['"
            raise HostListError(f"{_shown(text)}: {wrong}")
        inside = not inside
    if inside:
        raise HostListError(f"{_shown(text)}: '[' is never closed")
    return _EXPRESSION.findall(text)


_Piece = str | _Numbers


@lru_cache(maxsize=256)
def _short_pieces(expression: str) -> tuple[_Piece, ...]:
    return _read(expression)


def _pieces(expression: str) -> tuple[_Piece, ...]:
    """The texts and brackets of one expression, by turns. Raises HostListError."""
    # Texts of any length would keep memory that nobody bounds.
    return _short_pieces(expression) if len(expression) <= _SHOWN else _read(expression)


def _read(expression: str) -> tuple[_Piece, ...]:
    parts = _BRACKET.split(expression)
    return tuple(_Numbers(one, expression) if at % 2 else one for at, one in enumerate(parts))


def _names(pieces: tuple[_Piece, ...]) -> Iterator[str]:
    pools = ((one,) if isinstance(one, str) else one for one in pieces)
    return map("".join, itertools.product(*pools))


def _is_of(name: str, pieces: tuple[_Piece, ...]) -> bool:
    """Whether a name is made of these pieces: by the places in it where each may end."""
    ends = {0}
    for piece in pieces:
        if isinstance(piece, str):
            ends = {at + len(piece) for at in ends if name.startswith(piece, at)}
        else:
            ends = {end for at in ends for end in _number_ends(name, at, piece)}
        if not ends:
            return False
    return len(name) in ends


def _number_ends(name: str, at: int, numbers: _Numbers) -> Iterator[int]:
    for end in range(at + 1, min(at + numbers.longest, len(name)) + 1):
        if name[end - 1] not in _NUMERALS:
            return
        if numbers.has(name[at:end]):
            yield end


def _range(part: str, expression: str) -> _Range:
    """One range; the width of its first number is the padding."""
    found = _RANGE.match(part.strip())
    if found is None:
        raise HostListError(
            f"{_shown(expression)}: {_shown(part)} is not a number or a range such as 1-4 or 01-10"
        )
    low, high = found[1], found[2] or found[1]
    one = _Range(int(low), int(high), len(low))
    if one.low > one.high:
        raise HostListError(f"{_shown(expression)}: range {_shown(part)} runs backwards")
    if one.size > LIMIT:
        raise HostListError(f"{_shown(expression)} stands for more than {LIMIT} names")
    return one


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


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
