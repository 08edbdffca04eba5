"""When Slurm differs from a declaration by somebody's own change: what is believed, what is told.

Report, Revert or Adopt is chosen by a field of a Partition, by an annotation of other kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from penstock.api.cluster.marks import DRIFT, DRIFTS
from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.meta import Condition
from penstock.slurm.partition.declaration import Difference

DRIFTED = "Drifted"
CONFIRM_S = 2.0
"""A difference that is there for so long, in two answers, is no change under way."""
AGAIN_S = 30.0
"""Pause before what did not help is tried again; twice as long each time."""
_MOST_DOUBLINGS = 6

Found: TypeAlias = Mapping[str, tuple[Difference, ...]]
"""Differences by the name of a partition or node."""
Choice: TypeAlias = Literal["Report", "Revert", "Adopt"]


@dataclass(frozen=True, slots=True)
class Seen:
    """Differences of one thing, and when they were first seen (monotonic seconds).

    `left` is why they could not be put back or adopted when that was last tried.
    """

    differences: tuple[Difference, ...]
    since: float
    confirmed: bool = False
    tries: int = 0
    tried_at: float = 0.0
    left: str = ""


def watch(before: Mapping[str, Seen], found: Found, as_of: float) -> dict[str, Seen]:
    """What is known after an answer of slurmctld that was asked for at `as_of`."""
    now: dict[str, Seen] = {}
    for name, differences in found.items():
        old = before.get(name)
        if old is None or old.differences != differences:
            now[name] = Seen(differences, as_of)
        else:
            now[name] = replace(old, confirmed=as_of - old.since >= CONFIRM_S)
    return now


class Watch:
    """What was changed in Slurm under one object, answer by answer."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}
        self._known = False

    @property
    def found(self) -> Found | None:
        """What differs; None while that is not known, as a change of ours is on its way."""
        if not self._known:
            return None
        return {name: one.differences for name, one in self._seen.items()}

    @property
    def waits(self) -> bool:
        """Whether another answer is needed to know."""
        return not all(one.confirmed for one in self._seen.values())

    def hear(self, found: Found | None, as_of: float) -> Found:
        """Take an answer in; what it confirms and what was not confirmed before."""
        before = self._seen
        self._seen = {} if found is None else watch(before, found, as_of)
        self._known = found is not None and not self.waits
        return {
            name: one.differences
            for name, one in self._seen.items()
            if one.confirmed and not (name in before and before[name].confirmed)
        }

    def due(self, now: float) -> list[str]:
        """Of what differs, names of what is to be put back or adopted now."""
        return [
            name
            for name, one in self._seen.items()
            if one.confirmed and (not one.tries or now - one.tried_at >= _pause(one.tries))
        ]

    def tried(self, name: str, now: float, left: str = "") -> None:
        """It was put back or adopted, or that is not possible, and why."""
        if (one := self._seen.get(name)) is not None:
            self._seen[name] = replace(one, tries=one.tries + 1, tried_at=now, left=left)

    def left(self, name: str) -> str:
        """Why it could not be put back or adopted."""
        one = self._seen.get(name)
        return one.left if one is not None else ""


def _pause(tries: int) -> float:
    return AGAIN_S * 2.0 ** min(tries - 1, _MOST_DOUBLINGS)


def choice(annotations: Mapping[str, str]) -> tuple[Choice, list[Finding]]:
    """What an object's annotation chooses; a word that it does not know is told, and reports."""
    given = annotations.get(DRIFT, "Report")
    if given in DRIFTS:
        return given, []
    words = (
        f"Annotation {DRIFT} is {given!r}: it takes {', '.join(DRIFTS[:-1])} or {DRIFTS[-1]}. "
        "Until then drift is only reported"
    )
    return "Report", [Finding(False, "DriftUnknown", words)]


def findings(
    words: Sequence[str] | None, old: tuple[Condition, ...], *, always: bool = False
) -> list[Finding]:
    """The condition Drifted: there from the first drift on, or `always`. It leaves Ready alone.

    While what differs is not known (None) it stays as it is.
    """
    before = find(old, DRIFTED)
    if words:
        return [Finding(True, "ChangedInSlurm", "; ".join(words), type=DRIFTED)]
    if words is None and before is not None:
        agrees = before.status == "False"
        return [Finding(True, before.reason, before.message, type=DRIFTED, inverted=agrees)]
    if before is not None or (always and words is not None):
        return [Finding(True, "AsDeclared", type=DRIFTED, inverted=True)]
    return []


def is_told(words: str, old: tuple[Condition, ...]) -> bool:
    """Whether the condition says it already, so that a new process need not."""
    before = find(old, DRIFTED)
    return before is not None and before.status == "True" and words in before.message


def with_reason(words: str, left: str) -> str:
    """What differs, and why it does still."""
    return f"{words} ({left})" if left else words
