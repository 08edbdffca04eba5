"""The series that an expression of PromQL names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_TOKEN: Final = re.compile(
    r"""
    (?P<text>"(?:[^"\\]|\\.)*")
  | (?P<number>\d[\w.]*)
  | (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
  | (?P<variable>\$\w+)
  | (?P<space>\s+)
  | (?P<sign>=~|!~|==|!=|<=|>=|[{}()\[\],=<>+\-*/%^@:])
    """,
    re.VERBOSE,
)
_WORDS: Final = frozenset(("and", "or", "unless", "bool", "offset", "inf", "nan"))
_LISTS: Final = frozenset(("by", "without", "on", "ignoring", "group_left", "group_right"))
_NAME: Final = re.compile(r'__name__\s*=(~?)\s*"([^"]*)"')


def tokens(expr: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each token. Raises ValueError at what is none."""
    at = 0
    while at < len(expr):
        found = _TOKEN.match(expr, at)
        if found is None:
            raise ValueError(f"no PromQL at {expr[at : at + 20]!r} of {expr!r}")
        at = found.end()
        if found.lastgroup != "space":
            yield str(found.lastgroup), found.group()


def names(expr: str) -> set[str]:
    """Names of series; a pattern of `__name__` is in it as `~PATTERN`."""
    listed = list(tokens(expr))
    found: set[str] = set()
    braces, skipped = 0, 0
    for number, (kind, text) in enumerate(listed):
        after = listed[number + 1][1] if number + 1 < len(listed) else ""
        if text == "{":
            braces += 1
        elif text == "}":
            braces -= 1
        elif skipped:
            skipped += {"(": 1, ")": -1}.get(text, 0)
            # The list of labels has begun with its bracket, and ends with the one that closes it.
            if skipped == 1 and text == ")":
                skipped = 0
        elif kind == "name" and not braces:
            if text in _LISTS:
                skipped = 1 if after == "(" else 0
            elif text not in _WORDS and not _calls(listed, number):
                found.add(text)
    return found | {f"{tilde}{name}" for tilde, name in _NAME.findall(expr)}


def _calls(listed: list[tuple[str, str]], number: int) -> bool:
    """Whether a name is that of a function or an aggregation."""
    after = [text for _, text in listed[number + 1 : number + 2]]
    return bool(after) and (after[0] == "(" or after[0] in ("by", "without"))
