"""The kinds of patches: merge (RFC 7386), JSON (RFC 6902) and strategic merge.

All return a new object and leave the old one, whose parts may be shared, as it was.
Source: Kubernetes API concepts, "Patches"; community "strategic-merge-patch".
"""

from __future__ import annotations

from typing import Any, cast

from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver.lists import merge_keys, same_item


class PatchError(Exception):
    """The patch does not fit the object."""


def merge(old: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(cast("Json", old)) if isinstance(old, dict) else {}
    for key, value in cast("Json", patch).items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def strategic(old: Json, patch: Json) -> Json:
    """A strategic merge patch; of its directives only `$patch: delete` of a list's item."""
    merged = dict(old)
    for key, value in patch.items():
        before = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            under = cast("Json", before) if isinstance(before, dict) else {}
            merged[key] = strategic(under, cast("Json", value))
        elif isinstance(value, list):
            merged[key] = _strategic_list(key, before, cast("list[Any]", value))
        else:
            merged[key] = value
    return merged


def _strategic_list(name: str, before: Any, patch: list[Any]) -> list[Any]:
    keys = merge_keys(name, patch)
    if not keys:
        return patch
    items = cast("list[Json]", list(before or ()))
    for change in cast("list[Json]", patch):
        at = next((i for i, item in enumerate(items) if same_item(change, item, keys)), None)
        if change.get("$patch") == "delete":
            if at is not None:
                del items[at]
        elif at is None:
            items.append(change)
        else:
            items[at] = strategic(items[at], change)
    return items


def json_patch(old: Json, operations: list[Json]) -> Json:
    """RFC 6902: add, replace, remove and test. Raises PatchError."""
    root: Any = old
    for one in operations:
        steps = [s.replace("~1", "/").replace("~0", "~") for s in one["path"].split("/")[1:]]
        root = _operate(root, steps, one)
    return cast("Json", root)


def _operate(value: Any, steps: list[str], one: Json) -> Any:
    if not steps:
        if one["op"] == "test":
            if value != one.get("value"):
                raise PatchError(f"test failed at {one['path']}")
            return value
        return one.get("value")
    step, last = steps[0], len(steps) == 1
    if isinstance(value, dict):
        found = dict(cast("Json", value))
        if last and one["op"] == "remove":
            if step not in found:
                raise PatchError(f"nothing at {one['path']}")
            del found[step]
        elif not last and step not in found:
            raise PatchError(f"nothing at {one['path']}")
        else:
            found[step] = _operate(found.get(step), steps[1:], one)
        return found
    if isinstance(value, list):
        items = list(cast("list[Any]", value))
        at = len(items) if step == "-" else int(step)
        if last and one["op"] == "add":
            items.insert(at, one.get("value"))
        elif last and one["op"] == "remove":
            del items[at]
        else:
            items[at] = _operate(items[at], steps[1:], one)
        return items
    raise PatchError(f"nothing at {one['path']}")
