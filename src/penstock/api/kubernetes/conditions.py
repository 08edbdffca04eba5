"""Conditions that report the state of an object to people and tools.

Ready is whether it has its desired state. Reconciling and Stalled are there only while they apply:
Reconciling while the operator is getting there, Stalled when it cannot without a person's help.
Source: Kubernetes API conventions (conditions), kstatus of sigs.k8s.io/cli-utils.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from penstock.api.kubernetes.meta import Condition
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.object import ObjectReason
from penstock.catalog.runbook import with_address

READY = ConditionType.READY
RECONCILING = ConditionType.RECONCILING
STALLED = ConditionType.STALLED

_MESSAGE_LIMIT = 32768
_STATUS: dict[bool | None, Literal["True", "False", "Unknown"]] = {
    True: "True",
    False: "False",
    None: "Unknown",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about an object: whether one aspect is as desired, and the message for the user.

    `ok` is True when it is (a message then is a remark), None while it is under way or unknown, and
    False when nothing will change before somebody acts. With `type` the finding is shown as a
    condition of its own as well.
    """

    ok: bool | None
    reason: ConditionReason
    message: str = ""
    type: ConditionType | Literal[""] = ""
    inverted: bool = False
    """Its own condition is True when all is not well, as Drifted."""
    excluded_from_ready: bool = False
    """It is only a condition of its own and does not change Ready."""


def conditions(findings: Sequence[Finding]) -> tuple[Condition, ...]:
    """Ready, then Reconciling or Stalled, then the findings that are conditions of their own.

    Of the findings that are not ok those that need somebody come first, else the order stays. The
    first gives the reason, all of them the message. Times are left to `set_conditions`.
    """
    own = tuple(own_condition(c) for c in findings if c.type)
    findings = [c for c in findings if not c.excluded_from_ready]
    failing = sorted((c for c in findings if c.ok is not True), key=lambda c: c.ok is None)
    if not failing:
        reason = findings[0].reason if findings else ObjectReason.SETTLED
        return (_condition(READY, "True", reason, _joined(findings)), *own)
    first, message = failing[0], _joined(failing)
    return (
        _condition(READY, "False", first.reason, message),
        _condition(RECONCILING if first.ok is None else STALLED, "True", first.reason, message),
        *own,
    )


def own_condition(finding: Finding) -> Condition:
    """The condition of a finding that has one of its own (`Finding.type`)."""
    return _condition(finding.type, _shown(finding), finding.reason, finding.message)


def set_conditions(
    old: tuple[Condition, ...], new: Iterable[Condition], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """`old` brought up to `new`: the same object when nothing changes.

    A condition's time moves only with its status. Reconciling and Stalled go when `new` is
    without them; conditions of other types that `new` does not name are somebody else's and stay.
    """
    before = {one.type: one for one in old}
    after = {one.type: _stamped(one, before.get(one.type), generation, now) for one in new}
    kept = [
        after.pop(one.type, one)
        for one in old
        if one.type in after or one.type not in (RECONCILING, STALLED)
    ]
    result = (*kept, *after.values())
    return old if result == old else result


def find(conditions_: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((one for one in conditions_ if one.type == type_), None)


def _stamped(new: Condition, old: Condition | None, generation: int, now: datetime) -> Condition:
    same = old is not None and old.status == new.status and old.last_transition_time
    return Condition(
        type=new.type,
        status=new.status,
        reason=new.reason,
        message=new.message,
        observed_generation=generation,
        last_transition_time=same or now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _shown(finding: Finding) -> Literal["True", "False", "Unknown"]:
    return _STATUS[finding.ok if finding.ok is None else finding.ok != finding.inverted]


def _condition(
    type_: str, status: Literal["True", "False", "Unknown"], reason: ConditionReason, message: str
) -> Condition:
    # What is quoted may come from a file that is not UTF-8: the API server takes no surrogates.
    text = with_address(message, reason, _MESSAGE_LIMIT)
    words = text.encode(errors="replace").decode()
    return Condition(type=str(type_), status=status, reason=reason.value, message=words)


def _joined(findings: Iterable[Finding]) -> str:
    return "; ".join(dict.fromkeys(finding.message for finding in findings if finding.message))
