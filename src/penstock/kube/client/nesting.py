"""JSON that is nested deeper than the decoder goes.

kube-apiserver stores objects of up to 10,000 levels; Python's decoder gives up at about a thousand,
even in a field that nobody reads. One such object must not end the watch that all others live on.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

DEEPEST: Final = 200
"""Levels that are kept. A pod template in full has fewer than twenty."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_OPEN = b"[{"


def decode(body: bytes | msgspec.Raw, type_: type[T]) -> T:
    """Decode JSON; one that is nested too deeply comes with null in the place of what is deeper.

    Raises msgspec.DecodeError.
    """
    try:
        return msgspec.json.decode(body, type=type_)
    except RecursionError:
        return msgspec.json.decode(shallow(bytes(body)), type=type_)


def shallow(body: bytes) -> bytes:
    """The same JSON with null for each value below DEEPEST levels, in linear time."""
    kept: list[bytes] = []
    level, begin = 0, 0
    for token in _TOKEN.finditer(body):
        first = token[0][:1]
        if first in _OPEN:
            level += 1
            if level == DEEPEST + 1:
                kept += (body[begin : token.start()], b"null")
        elif first != b'"':
            level -= 1
            if level == DEEPEST:
                begin = token.end()
    kept.append(body[begin:])
    return b"".join(kept)
