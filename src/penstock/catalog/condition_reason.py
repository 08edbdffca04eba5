"""The form of a condition's reason: its name, meaning and next step."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Self

NOTHING: Final = "Nothing to do."
WAIT: Final = "Wait; it passes by itself."
PERSON: Final = True
"""Of `needs_person`: the reason has a runbook."""


class ConditionReason(StrEnum):
    """Base of the enumerations of reasons, one for each subject.

    The name is API: it never changes, and neither does its meaning. A reason with `needs_person`
    does not pass by itself. It has a runbook, docs/runbooks/NAME.md.
    """

    _value_: str
    meaning: str
    next_step: str
    needs_person: bool

    def __new__(cls, name: str, meaning: str, next_step: str, needs_person: bool = False) -> Self:
        """Create a member whose value is the name."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.meaning = meaning
        member.next_step = next_step
        member.needs_person = needs_person
        return member
