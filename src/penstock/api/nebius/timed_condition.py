"""Conditions that also have the time of their last update, as two kinds have them."""

from __future__ import annotations

from typing import Annotated

from penstock.api.kubernetes.meta import Condition, Json
from penstock.api.kubernetes.schema import about
from penstock.api.kubernetes.spec_parts import CONDITION, Status
from penstock.base import times


class TimedCondition(Condition, frozen=True):
    """One aspect of an object's state, and when it was written last."""

    last_update_time: str = ""


_SCHEMA: Json = {
    **CONDITION,
    "properties": {
        **CONDITION["properties"],
        "lastUpdateTime": {"format": "date-time", "description": "When it was written last."},
    },
}


class TimedStatus(Status, frozen=True):
    """What the status of these kinds has beside its own fields."""

    conditions: Annotated[
        tuple[Annotated[TimedCondition, about("One aspect of the state.", _SCHEMA)], ...],
        about(
            "State of the object: Ready, and Reconciling or Stalled while they apply.",
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = ()
    reason: Annotated[str, about("Not used: conditions have reasons.")] = ""
    update_status: Annotated[str, about("Not used: conditions have it.")] = ""


def timed(
    status: TimedStatus, found: tuple[Condition, ...], now: float
) -> tuple[TimedCondition, ...]:
    """The conditions with the time of their last update, which these kinds require."""
    old = {_fields(one): one.last_update_time for one in status.conditions}
    return tuple(
        TimedCondition(
            type=one.type,
            status=one.status,
            reason=one.reason,
            message=one.message,
            observed_generation=one.observed_generation,
            last_transition_time=one.last_transition_time,
            last_update_time=old.get(_fields(one)) or times.write(now),
        )
        for one in found
    )


def _fields(one: Condition) -> tuple[str, str, str, str, int, str]:
    return (
        one.type,
        one.status,
        one.reason,
        one.message,
        one.observed_generation,
        one.last_transition_time,
    )
