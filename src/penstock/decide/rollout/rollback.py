"""Rollback to a recorded template that an annotation of the object requests, once per value.

The value is the number or the name of a ControllerRevision. `0` and `previous` mean the newest one
whose template differs from the present spec. One JSON patch writes the recorded fields to the spec,
with an annotation that records the value as done. So a process that is killed rolls back once or
not at all. A rollback that is not possible is reported once. It is not tried later, when a new
revision may have that number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.api.cluster.marks import ROLLBACK, ROLLED_BACK
from penstock.api.kubernetes.meta import Json
from penstock.base.text import list_some
from penstock.model.recorded_revision import RecordedRevision
from penstock.model.worker_set import WorkerSet

PREVIOUS = ("0", "previous")


@dataclass(frozen=True, slots=True)
class Rollback:
    """The patch for the annotation's `value` and its event; `why` is the reason against it."""

    value: str
    number: int = 0
    name: str = ""
    spec: Json | None = None
    """The recorded fields for the spec; None when the rollback is not possible."""
    why: str = ""


def requested(workers: WorkerSet) -> str | None:
    """Return the value of the annotation that was not handled yet."""
    notes = workers.metadata.annotations
    value = notes.get(ROLLBACK, "").strip()
    done = notes.get(ROLLED_BACK)
    return value if value and value != done and not workers.metadata.deleting else None


def rollback(
    workers: WorkerSet, value: str, declared: RecordedRevision, records: Sequence[RecordedRevision]
) -> Rollback:
    """Return the rollback for a value; `declared` is the template of the present spec."""
    ordered = sorted(records, key=lambda one: (-one.number, one.name))
    if value in PREVIOUS:
        form = declared.read_form()
        found = next((one for one in ordered if one.read_form() != form), None)
        if found is None:
            return Rollback(value, why=f"no older template is recorded{_limit(workers)}")
    else:
        found = next((one for one in ordered if value in {str(one.number), one.name}), None)
        if found is None:
            there = list_some([f"{one.number} ({one.name})" for one in ordered])
            message = f"there is no revision {value}, but {there or 'none at all'}"
            return Rollback(value, why=f"{message}{_limit(workers)}")
    spec = found.read_spec()
    if spec is None:
        why = f"{found.name} does not record a template"
        return Rollback(value, found.number, found.name, why=why)
    return Rollback(value, found.number, found.name, spec)


def _limit(workers: WorkerSet) -> str:
    limit = workers.revision_history_limit
    return f"; spec.revisionHistoryLimit is {limit}: so many are kept besides those that pods have"
