"""Who owns which field: managedFields, and server-side apply on top of them.

A set of fields is a set of paths; the steps of a path are those of `fieldsV1`.
Source: Kubernetes documentation, "Server-Side Apply"; API reference, ManagedFieldsEntry v1.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, cast

import msgspec

from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver.lists import ATOMIC, DEFAULTED, SETS, merge_keys, same_item

Path = tuple[str, ...]
Paths = frozenset[Path]
NOT_OWNED = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    }
)


class OwnedByOthersError(Exception):
    """An apply without force meets fields that somebody else owns with other values."""


def paths_of(obj: Json) -> Paths:
    """The paths of all leaves of a manifest that can be owned."""
    meta = {k: v for k, v in obj.get("metadata", {}).items() if k not in NOT_OWNED}
    rest = {k: v for k, v in obj.items() if k not in {"apiVersion", "kind", "metadata"}}
    return frozenset(_leaves((), "", {"metadata": meta, **rest} if meta else rest))


def tree(paths: Iterable[Path]) -> Json:
    """`fieldsV1` of a set of paths."""
    root: Json = {}
    for path in sorted(paths):
        node = root
        for step in path:
            node = node.setdefault(step, {})
    return root


def paths_in(fields: Json) -> Paths:
    """The set of paths of a `fieldsV1`."""
    return frozenset(_walk((), fields))


def after_update(old: Json, new: Json, manager: str, now: str) -> Json:
    """`new` with its managedFields, when `manager` changed `old` (or {}) by other than apply."""
    before, after = paths_of(old), paths_of(new)
    touched = {p for p in after if p not in before or value_at(old, p) != value_at(new, p)}
    entries = list[Json]()
    ours = Paths()
    for entry in _entries(new):
        owned = paths_in(entry.get("fieldsV1") or {})
        if (entry["manager"], entry["operation"]) == (manager, "Update"):
            ours = owned
        elif kept := (owned - touched) & after:
            entries.append(_entry(entry["manager"], entry["operation"], new, kept, now))
    if ours := (ours & after) | touched:
        entries.append(_entry(manager, "Update", new, ours, now))
    return _with(new, entries)


def apply(live: Json, manifest: Json, manager: str, now: str, *, force: bool) -> Json:
    """Server-side apply on `live` ({} when it is new). Raises OwnedByOthersError."""
    asked = paths_of(manifest)
    had, others = Paths(), list[tuple[Json, Paths]]()
    for entry in _entries(live):
        owned = paths_in(entry.get("fieldsV1") or {})
        if (entry["manager"], entry["operation"]) == (manager, "Apply"):
            had = owned
        else:
            others.append((entry, owned))
    differing = {p for p in asked if value_at(live, p) != value_at(manifest, p)}
    disputed = {p for _, owned in others for p in owned & differing}
    if disputed and not force:
        raise OwnedByOthersError(", ".join(".".join(p) for p in sorted(disputed)))
    entries = [
        _entry(entry["manager"], entry["operation"], manifest, kept, entry["time"])
        for entry, owned in others
        if (kept := owned - disputed)
    ]
    still = asked.union(*(owned for _, owned in others))
    merged: Json = _merged("", live, manifest)
    # `creationTimestamp: null` of a template, as API servers before 1.34 have it, stays.
    gone = {path for path in had - still if value_at(live, path) is not None}
    for path in sorted({_whole_item(path, still) for path in gone}, reverse=True):
        if not any(other[: len(path)] == path for other in still):
            merged = _without(merged, path)
    entries.append(_entry(manager, "Apply", manifest, asked, now))
    new = _with(merged, entries)
    return live if _same(new, live) else new


def value_at(obj: Any, path: Path) -> Any:
    """The value of a path; None where there is none."""
    for step in path:
        if obj is None:
            return None
        obj = _child(obj, step)
    return obj


def _child(obj: Any, step: str) -> Any:
    if step.startswith("f:"):
        return cast("Json", obj).get(step[2:]) if isinstance(obj, dict) else None
    wanted: Any = msgspec.json.decode(step[2:])
    if not isinstance(obj, list):
        return None
    if step.startswith("v:"):
        return wanted if wanted in obj else None
    keys = tuple(cast("Json", wanted))
    return next((i for i in cast("list[Any]", obj) if same_item(wanted, i, keys)), None)


def _leaves(path: Path, name: str, value: Any) -> Iterable[Path]:
    if isinstance(value, dict) and value and name not in ATOMIC:
        for key, inner in cast("Json", value).items():
            if inner is not None:
                yield from _leaves((*path, f"f:{key}"), key, inner)
    elif isinstance(value, list) and value and name in SETS:
        for item in cast("list[str]", value):
            yield (*path, f"v:{msgspec.json.encode(item).decode()}")
    elif isinstance(value, list) and (keys := merge_keys(name, cast("list[Any]", value))):
        for item in cast("list[Json]", value):
            named = {key: item.get(key) for key in keys}
            yield from _leaves((*path, f"k:{msgspec.json.encode(named).decode()}"), "", item)
    else:
        yield path


def _walk(path: Path, node: Json) -> Iterable[Path]:
    """The leaves. `.` is the item itself, which whoever owns anything of it owns too."""
    below = [(step, inner) for step, inner in node.items() if step != "."]
    if not below and path:
        yield path
    for step, inner in below:
        yield from _walk((*path, _port(step)), inner)


def _port(step: str) -> str:
    """The step to an item of `ports` as it is here, where the protocol is no key."""
    if not step.startswith("k:") or "port" not in step.lower():
        return step
    keys: Json = msgspec.json.decode(step[2:])
    keys.pop("protocol", None)
    return f"k:{msgspec.json.encode(keys).decode()}"


def _merged(name: str, live: Any, asked: Any) -> Any:
    if isinstance(live, dict) and isinstance(asked, dict) and name not in ATOMIC:
        merged = dict(cast("Json", live))
        for key, value in cast("Json", asked).items():
            if value is not None and not (name == "metadata" and key in NOT_OWNED - {"name"}):
                merged[key] = _merged(key, merged.get(key), value)
        return merged
    if isinstance(live, list) and isinstance(asked, list):
        had, new = cast("list[Any]", live), cast("list[Any]", asked)
        if name in SETS:
            return had + [item for item in new if item not in had]
        if keys := merge_keys(name, new):
            return _merged_items(had, cast("list[Json]", new), keys)
    return _with_defaults(live, asked)


def _with_defaults(live: Any, asked: Any) -> Any:
    """A value that is applied as a whole, with the defaults that a real API server gave it."""
    if isinstance(live, dict) and isinstance(asked, dict):
        had, new = cast("Json", live), cast("Json", asked)
        kept = {k: v for k, v in had.items() if k in DEFAULTED and k not in new}
        return {k: _with_defaults(had.get(k), v) for k, v in new.items()} | kept
    if isinstance(live, list) and isinstance(asked, list):
        before, after = cast("list[Any]", live), cast("list[Any]", asked)
        return [_with_defaults(*pair) for pair in zip_longest(before[: len(after)], after)]
    return asked


def _merged_items(live: list[Any], asked: list[Json], keys: tuple[str, ...]) -> list[Any]:
    found: list[Any] = []
    for item in asked:
        old = next((one for one in live if same_item(item, one, keys)), None)
        found.append(item if old is None else _merged("", old, item))
    rest = [one for one in live if not any(same_item(item, one, keys) for item in asked)]
    return [*found, *rest]


def _whole_item(path: Path, still: Paths) -> Path:
    """The item of a list that a path leads into, when nobody owns anything of it any more."""
    for end, step in enumerate(path, 1):
        if step.startswith("k:") and not any(other[:end] == path[:end] for other in still):
            return path[:end]
    return path


def _without(obj: Any, path: Path) -> Any:
    """`obj` without what is at the path; what becomes empty by it goes too."""
    step, rest = path[0], path[1:]
    if step.startswith("f:"):
        key = step[2:]
        if not isinstance(obj, dict) or key not in obj:
            return cast("Any", obj)
        kept = dict(cast("Json", obj))
        inner = _without(kept[key], rest) if rest else None
        if rest and inner not in ({}, []):
            kept[key] = inner
        else:
            del kept[key]
        return kept
    item = _child(obj, step)
    if item is None:
        return obj
    keys = tuple(msgspec.json.decode(step[2:])) if step.startswith("k:") else ()
    others = [one for one in cast("list[Any]", obj) if one is not item and one != item]
    inner = _without(item, rest) if rest else None
    if isinstance(inner, dict) and set(cast("Json", inner)) - set(keys):
        return [inner if one == item else one for one in cast("list[Any]", obj)]
    return others


def _entries(obj: Json) -> list[Json]:
    return cast("list[Json]", obj.get("metadata", {}).get("managedFields") or [])


def _entry(manager: str, operation: str, of: Json, owned: Iterable[Path], now: str) -> Json:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": of.get("apiVersion", ""),
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": tree(owned),
    }


def _with(obj: Json, entries: list[Json]) -> Json:
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": entries}}


def _same(one: Json, other: Json) -> bool:
    """Whether two objects are equal but for the times of their entries."""
    return _timeless(one) == _timeless(other)


def _timeless(obj: Json) -> Json:
    entries = [{k: v for k, v in one.items() if k != "time"} for one in _entries(obj)]
    entries.sort(key=lambda one: (one["manager"], one["operation"]))
    return _with(obj, entries)
