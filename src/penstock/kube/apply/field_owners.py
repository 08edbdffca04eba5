"""Handing fields over to server-side apply.

Fields written by a create or an update belong to another kind of owner (`Update`) than applied
ones, even under the same manager's name; an apply that leaves them out does not remove them.
Source: Kubernetes documentation, "Server-Side Apply", transferring ownership.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from penstock.api.kubernetes.meta import Json

Path = tuple[str, ...]
"""Names of fields, from the top of an object down."""


def ownership_patch(
    live: Json, manager: str, others: Collection[str], *, leave: Collection[Path] = ()
) -> list[Json] | None:
    """A JSON patch that makes the updates of `others` applied fields of `manager`.

    Fields at and below the paths of `leave` stay with their owners. None when there is nothing to
    hand over. The patch fails with a conflict when the object changed since.
    """
    meta = cast("Json", live["metadata"])
    entries = cast("list[Json]", meta.get("managedFields") or [])
    fields: Json = {}
    rest: list[Json] = []
    moved = False
    for entry in entries:
        owned = cast("Json", entry.get("fieldsV1") or {})
        if _applied_by(entry, manager):
            fields = _union(fields, owned)
            continue
        if not _updated_by(entry, others):
            rest.append(entry)
            continue
        left, given = _split(owned, leave)
        moved = moved or bool(given)
        fields = _union(fields, given)
        if left:
            rest.append({**entry, "fieldsV1": left})
    if not moved:
        return None
    applied: Json = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": live["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [applied, *rest]},
        {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": meta["resourceVersion"],
        },
    ]


def _updated_by(entry: Json, managers: Collection[str]) -> bool:
    return (
        entry.get("manager") in managers
        and entry.get("operation") == "Update"
        and not entry.get("subresource")
    )


def _applied_by(entry: Json, manager: str) -> bool:
    return (
        entry.get("manager") == manager
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
    )


def _union(one: Json, other: Json) -> Json:
    merged: dict[str, Any] = dict(one)
    for key, value in other.items():
        merged[key] = _union(cast("Json", merged.get(key) or {}), cast("Json", value))
    return merged


def _split(fields: Json, leave: Collection[Path]) -> tuple[Json, Json]:
    """The fields at and below these paths, and all others."""
    left: Json = {}
    given: Json = {}
    for key, below in fields.items():
        paths = [path[1:] for path in leave if path[:1] == (key.removeprefix("f:"),)]
        if () in paths:
            left[key] = below
        elif paths and below:
            kept, rest = _split(cast("Json", below), paths)
            left |= {key: kept} if kept else {}
            given |= {key: rest} if rest else {}
        else:
            given[key] = below
    return left, given


def has_other_managers(live: Json, manager: str, *path: str) -> bool:
    """Whether others wrote a field of an object, and `manager` never did."""
    meta = cast("Json", live.get("metadata") or {})
    owners = {
        entry.get("manager")
        for entry in cast("list[Json]", meta.get("managedFields") or [])
        if not entry.get("subresource") and _has(cast("Json", entry.get("fieldsV1") or {}), path)
    }
    return bool(owners) and manager not in owners


def _has(fields: Json, path: Path) -> bool:
    for step in path:
        if f"f:{step}" not in fields:
            return False
        fields = cast("Json", fields[f"f:{step}"] or {})
    return True
