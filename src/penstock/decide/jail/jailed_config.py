"""Conditions of a JailedConfig, which are also the journal of its update actions.

UpdateActionsCompleted is written as False before the first file is replaced. A process that begins
later reads from it that slurmctld has not been reconfigured since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.meta import Condition
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.jailed_config import JailedConfigReason
from penstock.model.jail_file import Fault

FILES_WRITTEN: Final = ConditionType.FILES_WRITTEN
UPDATE_ACTIONS_COMPLETED: Final = ConditionType.UPDATE_ACTIONS_COMPLETED
INIT: Final = JailedConfigReason.INIT
REFRESH: Final = JailedConfigReason.REFRESH
SUCCESS: Final = JailedConfigReason.SUCCESS
FAILED: Final = JailedConfigReason.FAILED
NOT_WRITTEN: Final = JailedConfigReason.NOT_WRITTEN
MISSING_ACTION: Final = JailedConfigReason.MISSING_ACTION
_DUE: Final = frozenset({INIT, REFRESH, FAILED})


@dataclass(frozen=True, slots=True)
class Member:
    """One JailedConfig of a group after its files were handled.

    `conditions` are those of its status before. `fault` is why its files are not as declared,
    `waits_for` is why they are not yet. `has_changed` is whether a file of it was replaced now.
    """

    conditions: tuple[Condition, ...]
    reconfigures: bool
    is_grouped: bool
    fault: Fault | None = None
    waits_for: str = ""
    has_changed: bool = False

    @property
    def is_due(self) -> bool:
        """Whether its files changed and slurmctld has not been reconfigured since."""
        if self.fault is not None or self.waits_for:
            return False
        return self.has_changed or _was_started(self.conditions)


def has_action(members: Iterable[Member]) -> bool:
    """Whether a change of any member is followed by a reconfigure."""
    return any(one.reconfigures for one in members)


def needs_reconfigure(members: Sequence[Member]) -> bool:
    """Whether slurmctld has to be reconfigured for a group now."""
    return has_action(members) and any(one.is_due for one in members)


def not_filled(conditions: tuple[Condition, ...], words: str) -> list[Finding]:
    """Conditions while the jail is not filled yet; `words` are the reason."""
    last = find(conditions, FILES_WRITTEN)
    if last is None or last.reason == INIT.value:
        return [
            Finding(None, INIT, words, FILES_WRITTEN),
            Finding(None, INIT, words, UPDATE_ACTIONS_COMPLETED),
        ]
    return [Finding(False, REFRESH, words, FILES_WRITTEN)]


def refreshing() -> list[Finding]:
    """Conditions before the first file is replaced."""
    return [
        Finding(False, REFRESH, "Files are being replaced", FILES_WRITTEN),
        Finding(False, REFRESH, "Files are being replaced", UPDATE_ACTIONS_COMPLETED),
    ]


def findings(member: Member, *, acts: bool, failure: Fault | None, waits: str) -> list[Finding]:
    """Conditions of one member once its files were handled.

    `acts` is whether changes of its group are followed by a reconfigure. `failure` is why that
    failed and `waits` is what it waits for; with neither of them it is completed.
    """
    return [_written(member), _completed(member, acts=acts, failure=failure, waits=waits)]


def _written(member: Member) -> Finding:
    if member.fault is not None:
        return Finding(False, member.fault.reason, member.fault.message, FILES_WRITTEN)
    if member.waits_for:
        return Finding(False, REFRESH, member.waits_for, FILES_WRITTEN)
    return Finding(True, SUCCESS, "", FILES_WRITTEN)


def _completed(member: Member, *, acts: bool, failure: Fault | None, waits: str) -> Finding:
    type_ = UPDATE_ACTIONS_COMPLETED
    if member.fault is not None or member.waits_for:
        words = "The files are not written: see condition FilesWritten"
        # A part of them may have been replaced: the reconfigure stays due.
        reason = REFRESH if _was_started(member.conditions) else NOT_WRITTEN
        return Finding(False, reason, words, type_)
    if not acts:
        return Finding(True, SUCCESS if member.is_grouped else MISSING_ACTION, "", type_)
    if failure is not None:
        return Finding(False, failure.reason, failure.message, type_)
    if waits:
        return Finding(False, REFRESH, waits, type_)
    return Finding(True, SUCCESS, "", type_)


def _was_started(conditions: tuple[Condition, ...]) -> bool:
    last = find(conditions, UPDATE_ACTIONS_COMPLETED)
    return last is not None and last.status != "True" and last.reason in _DUE
