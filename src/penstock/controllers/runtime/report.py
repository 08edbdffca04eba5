"""From checks to an object's conditions, and from changes to events."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from penstock.api.kubernetes.conditions import (
    STALLED,
    Finding,
    conditions,
    own_condition,
    set_conditions,
)
from penstock.api.kubernetes.meta import Condition, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.registry import problems, unsupported_fields
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.object import ObjectReason
from penstock.catalog.runbook import without_address
from penstock.kube import Recorder

SERVED = ConditionType.SERVED
LONGEST_WORDS = 300
"""Characters of an unexpected failure that a condition quotes."""
_MOST_KNOWN = 256
_INVALID: dict[str, tuple[KubeObject, tuple[Finding, ...]]] = {}
"""Faults by uid. Objects do not change: one that a cache still has is not validated again."""


def invalid(obj: KubeObject) -> list[Finding]:
    """Return the faults of an object that the API server's schema does not reject."""
    known, found = _INVALID.get(obj.metadata.uid, (None, ()))
    if known is not obj:
        found = tuple(
            Finding(False, ObjectReason.INVALID, f"{one.path}: {one.message}")
            for one in problems(obj)
        )
        if len(_INVALID) >= _MOST_KNOWN:
            _INVALID.clear()
        _INVALID[obj.metadata.uid] = (obj, found)
    return list(found)


INTERNAL_ERROR = ObjectReason.INTERNAL_ERROR
"""Reason of the conditions of an object whose reconcile failed unexpectedly."""


def internal_error(kind: str, name: str, error: Exception) -> Finding:
    """An unexpected failure of the reconcile of one object."""
    words = str(error).encode(errors="replace").decode()
    words = " ".join(words[:LONGEST_WORDS].split()) or "no further words"
    return Finding(
        False,
        INTERNAL_ERROR,
        f"{kind} {name} cannot be reconciled and stays as it is: {type(error).__name__}: {words}. "
        "Undo the last change of it or of objects it names, and report this with the operator's "
        "log",
    )


def build_conditions(
    obj: KubeObject, old: tuple[Condition, ...], findings: list[Finding], now: float
) -> tuple[Condition, ...]:
    """The conditions to write at `now` (Unix seconds): Ready and its like, and Served.

    Served is False when the object asks for something that this version does not do; the rest of
    the object is served all the same, so Ready does not depend on it.
    """
    missing = unsupported_fields(obj)
    served = (
        Finding(False, ObjectReason.FIELDS_NOT_SERVED, "; ".join(missing), type=SERVED)
        if missing
        else Finding(True, ObjectReason.ALL_FIELDS_SERVED, type=SERVED)
    )
    when = datetime.fromtimestamp(now, UTC)
    return set_conditions(
        old, (*conditions(findings), own_condition(served)), obj.metadata.generation, when
    )


class Events:
    """Events about the objects of one kind."""

    def __init__(self, recorder: Recorder, resource: Resource[Any]) -> None:
        self._recorder = recorder
        self._resource = resource

    def of(self, resource: Resource[Any]) -> Events:
        """Events about objects of another kind."""
        return Events(self._recorder, resource)

    def normal(self, obj: KubeObject, reason: str, note: str, action: str = "Reconcile") -> None:
        """Something was done."""
        self._recorder.event(self._resource, obj, reason=reason, note=note, action=action)

    def warning(self, obj: KubeObject, reason: str, note: str, action: str = "Reconcile") -> None:
        """Something is wrong, and a user may want to act."""
        self._recorder.event(
            self._resource, obj, reason=reason, note=note, action=action, warning=True
        )

    def emit_if_changed(
        self, obj: KubeObject, old: Iterable[Condition], new: Iterable[Condition]
    ) -> None:
        """Emit a warning once when Stalled or Served changes its status or message."""
        before = {one.type: (one.status, without_address(one.message)) for one in old}
        for one in new:
            bad = (one.type, one.status) in {(STALLED, "True"), (SERVED, "False")}
            words = without_address(one.message)
            if bad and before.get(one.type) != (one.status, words):
                self.warning(obj, one.reason, words)
