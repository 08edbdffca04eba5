"""Whether a check may start: its cluster works, and the checks before it have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import list_some
from penstock.catalog.reasons.check import CheckReason

PASSED = frozenset({"Complete", "Skipped"})
"""Results of the checks before it with which a check starts."""


@dataclass(frozen=True, slots=True)
class Before:
    """A check that another one depends on. `result` is empty before its first end."""

    name: str
    exists: bool = True
    runs_at_creation: bool = True
    result: str = ""

    @property
    def waits(self) -> bool:
        """Whether a check that depends on it waits. One that nobody starts is no reason to."""
        if not self.exists:
            return True
        return self.runs_at_creation and self.result not in PASSED

    @property
    def words(self) -> str:
        """What is the matter with it."""
        if not self.exists:
            return f"{self.name} (does not exist)"
        return f"{self.name} ({self.result or 'no result yet'})"


def in_maintenance(cluster: str, mode: str) -> Finding:
    """The schedule rests while the cluster is in a maintenance mode."""
    words = f"SlurmCluster {cluster} is in maintenance ({mode}); the check is suspended"
    return Finding(None, CheckReason.CLUSTER_MAINTENANCE, words)


def not_available(cluster: str, phase: str) -> Finding:
    """The check is not created before the cluster works."""
    words = f"The check waits for SlurmCluster {cluster}, which is {phase or 'Pending'}"
    return Finding(None, CheckReason.CLUSTER_NOT_AVAILABLE, words)


def waits_for(before: Sequence[Before]) -> Finding | None:
    """The check waits for others; None if all have ended well."""
    waiting = [one.words for one in before if one.waits]
    if not waiting:
        return None
    words = f"The check waits for other checks: {list_some(waiting)}"
    return Finding(None, CheckReason.DEPENDENCY, words)
