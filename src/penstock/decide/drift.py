"""Drift: Slurm differs from the declaration because somebody changed Slurm itself.

A difference counts once two answers confirm it. A field of a Partition, or an annotation of other
kinds, chooses to report it, revert it in Slurm or adopt it in the declaration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from penstock.api.cluster.marks import DRIFT, DRIFTS
from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.meta import Condition
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.configuration import ConfigReason
from penstock.slurm.partition.declaration import Difference

DRIFTED = ConditionType.DRIFTED
CONFIRM_S = 2.0
"""Seconds between two answers of slurmctld that confirm a difference."""
AGAIN_S = 30.0
"""Seconds before a failed revert or adoption is tried again; doubled each time."""
_MOST_DOUBLINGS = 6

Found: TypeAlias = Mapping[str, tuple[Difference, ...]]
"""Differences by the name of a partition or node."""
Choice: TypeAlias = Literal["Report", "Revert", "Adopt"]


@dataclass(frozen=True, slots=True)
class ObservedDrift:
    """Differences of one partition or node, and when they were first observed (monotonic seconds).

    `left` is the reason why the last attempt to revert or adopt them failed.
    """

    differences: tuple[Difference, ...]
    since: float
    confirmed: bool = False
    tries: int = 0
    tried_at: float = 0.0
    left: str = ""


def watch(
    before: Mapping[str, ObservedDrift], found: Found, as_of: float
) -> dict[str, ObservedDrift]:
    """Return the observed drift after an answer of slurmctld to a request sent at `as_of`."""
    now: dict[str, ObservedDrift] = {}
    for name, differences in found.items():
        old = before.get(name)
        if old is None or old.differences != differences:
            now[name] = ObservedDrift(differences, as_of)
        else:
            now[name] = replace(old, confirmed=as_of - old.since >= CONFIRM_S)
    return now


class Watch:
    """Observed drift of one object, updated with each answer of slurmctld."""

    def __init__(self) -> None:
        self._seen: dict[str, ObservedDrift] = {}
        self._known = False

    @property
    def found(self) -> Found | None:
        """Confirmed differences; None while a change of ours is on its way."""
        if not self._known:
            return None
        return {name: one.differences for name, one in self._seen.items()}

    @property
    def waits(self) -> bool:
        """Whether another answer is needed to confirm a difference."""
        return not all(one.confirmed for one in self._seen.values())

    def observe(self, found: Found | None, as_of: float) -> Found:
        """Take an answer in, and return the differences that it confirms for the first time."""
        before = self._seen
        self._seen = {} if found is None else watch(before, found, as_of)
        self._known = found is not None and not self.waits
        return {
            name: one.differences
            for name, one in self._seen.items()
            if one.confirmed and not (name in before and before[name].confirmed)
        }

    def due(self, now: float) -> list[str]:
        """Return the names of confirmed differences to revert or adopt now."""
        return [
            name
            for name, one in self._seen.items()
            if one.confirmed and (not one.tries or now - one.tried_at >= _pause(one.tries))
        ]

    def tried(self, name: str, now: float, left: str = "") -> None:
        """Record an attempt to revert or adopt; `left` is the reason why it failed."""
        if (one := self._seen.get(name)) is not None:
            self._seen[name] = replace(one, tries=one.tries + 1, tried_at=now, left=left)

    def left(self, name: str) -> str:
        """Return the reason why the last attempt to revert or adopt failed."""
        one = self._seen.get(name)
        return one.left if one is not None else ""


def _pause(tries: int) -> float:
    return AGAIN_S * 2.0 ** min(tries - 1, _MOST_DOUBLINGS)


def choice(annotations: Mapping[str, str]) -> tuple[Choice, list[Finding]]:
    """Return the choice of an object's annotation. An unknown value is Report, with a finding."""
    given = annotations.get(DRIFT, "Report")
    if given in DRIFTS:
        return given, []
    words = (
        f"Annotation {DRIFT} is {given!r}, so drift is only reported. Set it to "
        f"{', '.join(DRIFTS[:-1])} or {DRIFTS[-1]}"
    )
    return "Report", [Finding(False, ConfigReason.DRIFT_UNKNOWN, words)]


def findings(
    words: Sequence[str] | None, old: tuple[Condition, ...], *, always: bool = False
) -> list[Finding]:
    """Return the condition Drifted, from the first drift on or `always`. Ready ignores it.

    While the differences are unknown (None) the condition stays as it is.
    """
    before = find(old, DRIFTED)
    if words:
        return [Finding(True, ConfigReason.CHANGED_IN_SLURM, "; ".join(words), type=DRIFTED)]
    if words is None and before is not None:
        agrees = before.status == "False"
        reason = ConfigReason.AS_DECLARED if agrees else ConfigReason.CHANGED_IN_SLURM
        return [Finding(True, reason, before.message, type=DRIFTED, inverted=agrees)]
    if before is not None or (always and words is not None):
        return [Finding(True, ConfigReason.AS_DECLARED, type=DRIFTED, inverted=True)]
    return []


def is_reported(words: str, old: tuple[Condition, ...]) -> bool:
    """Return whether the condition has the message already, so that no event repeats it."""
    before = find(old, DRIFTED)
    return before is not None and before.status == "True" and words in before.message


def with_reason(words: str, left: str) -> str:
    """Return the differences, with the reason why they remain."""
    return f"{words} ({left})" if left else words
