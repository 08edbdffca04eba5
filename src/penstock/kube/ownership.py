"""Handing fields over to server-side apply.

Fields written by a create or an update belong to another kind of owner (`Update`) than applied
ones, even under the same manager's name; an apply that leaves them out does not remove them.
Source: Kubernetes documentation, "Server-Side Apply", transferring ownership.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from penstock.api.meta import Json


def adopt(live: Json, manager: str, others: Collection[str]) -> list[Json] | None:
    """A JSON patch that makes the updates of `others` applied fields of `manager`.

    None when there is nothing to hand over. The patch fails with a conflict when the object
    changed since.
    """
    meta = cast("Json", live["metadata"])
    entries = cast("list[Json]", meta.get("managedFields") or [])
    moved = [e for e in entries if _updated_by(e, others)]
    if not moved:
        return None
    fields: Json = {}
    rest: list[Json] = []
    for entry in entries:
        if entry in moved or _applied_by(entry, manager):
            fields = _union(fields, cast("Json", entry.get("fieldsV1") or {}))
        else:
            rest.append(entry)
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


def made_by_others(live: Json, manager: str, *path: str) -> bool:
    """Whether others wrote a field of an object, and `manager` never did."""
    meta = cast("Json", live.get("metadata") or {})
    owners = {
        entry.get("manager")
        for entry in cast("list[Json]", meta.get("managedFields") or [])
        if not entry.get("subresource") and _has(cast("Json", entry.get("fieldsV1") or {}), path)
    }
    return bool(owners) and manager not in owners


def _has(fields: Json, path: tuple[str, ...]) -> bool:
    for step in path:
        if f"f:{step}" not in fields:
            return False
        fields = cast("Json", fields[f"f:{step}"] or {})
    return True
