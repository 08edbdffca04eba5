"""Collects a burst of changes of the topology into one write of its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

QUIET_S: Final = 5.0
"""Without a further change for so long, a burst has ended."""
MOST_S: Final = 30.0
"""A burst that does not end is written so long after its first change."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Changes that are not written yet: the text after the last one, and when they came."""

    text: str
    first: float
    last: float

    def due(self) -> float:
        """When its text is to be written."""
        return min(self.last + QUIET_S, self.first + MOST_S)


def next_burst(burst: Burst | None, wanted: str, written: str, now: float) -> Burst | None:
    """The burst after a reconcile that wants a text; None where that is the written one."""
    if wanted == written:
        return None
    if burst is None:
        return Burst(wanted, now, now)
    return burst if burst.text == wanted else Burst(wanted, burst.first, now)
