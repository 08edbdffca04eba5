"""Compares a live object with a manifest, to find whether an apply would change it.

Two things must hold: the live object has each value of the manifest, and our field manager owns
exactly the manifest's fields. The second finds fields that we applied before and no longer apply,
and fields that another manager changed and now owns.
Source: Kubernetes API reference, ManagedFieldsEntry and "Server-Side Apply": `f:` a field, `k:`
an item of a list by its keys, `v:` an item of a set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.quantity import same_quantity

_IDENTITY = frozenset({"apiVersion", "kind"})
_UNMANAGED = frozenset({"name", "namespace", "uid", "resourceVersion"})
_QUANTITIES = re.compile(r"^spec\..*(\b(limits|requests|capacity|hard)\.|\.(sizeLimit|divisor)$)")
_ATOMIC = ("selector", "nodeSelector", "matchLabels")
"""Maps that are owned as one leaf and to which the server adds nothing: a key that is not asked for
is one of ours that was. Source: Kubernetes API reference, `x-kubernetes-map-type: atomic`."""


def owned_fields(live: Json, manager: str) -> Json | None:
    """The fields that `manager` owns by server-side apply; None when it never applied."""
    entries = cast("list[Json]", live.get("metadata", {}).get("managedFields") or [])
    for entry in entries:
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and not entry.get("subresource")
        ):
            return cast("Json", entry.get("fieldsV1") or {})
    return None


def field_differences(manifest: Json, live: Json, manager: str) -> tuple[str, ...]:
    """Paths at which `live` is not what `manifest` asks for; empty when it is.

    Paths are in order of the manifest, such as `spec.replicas`.
    """
    owned = owned_fields(live, manager)
    asked = {k: v for k, v in manifest.items() if k not in _IDENTITY}
    asked["metadata"] = {
        k: v for k, v in manifest.get("metadata", {}).items() if k not in _UNMANAGED
    }
    found = dict.fromkeys(_compare("", asked, live, owned))
    if owned is None and live.get("metadata", {}).get("managedFields"):
        # Written by others only, or by a plain create of ours: not under our apply yet.
        found["metadata.managedFields"] = None
    return tuple(found)


def _compare(path: str, asked: Any, live: Any, owned: Json | None) -> Iterator[str]:
    """Yield differences. `owned` is the node of the owned fields, {} at a leaf, None: unknown."""
    if isinstance(asked, dict) and isinstance(live, dict):
        yield from _compare_mapping(path, cast("Json", asked), cast("Json", live), owned)
    elif isinstance(asked, list) and isinstance(live, list):
        yield from _compare_list(path, cast("list[Any]", asked), cast("list[Any]", live), owned)
    elif asked != live and not (_QUANTITIES.search(path) and same_quantity(asked, live)):
        yield path


def _compare_mapping(path: str, asked: Json, live: Json, owned: Json | None) -> Iterator[str]:
    whole = owned is not None and not _named(owned)
    for key, value in asked.items():
        if value is None:
            continue
        here = f"{path}.{key}" if path else key
        if key not in live:
            if not _empty(value):
                yield here
            continue
        node = None if owned is None or whole else cast("Json | None", owned.get(f"f:{key}"))
        if owned is not None and not whole and node is None and not _empty(value):
            yield here
            continue
        yield from _compare(here, value, live[key], node)
    if whole and path.endswith(_ATOMIC) and live.keys() - asked.keys():
        yield path
    for name in _named(owned or {}):
        # API servers before 1.34 count `creationTimestamp: null` of a template as applied by us.
        if asked.get(name) is None and live.get(name) is not None:
            yield f"{path}.{name}" if path else name


def _compare_list(
    path: str, asked: list[Any], live: list[Any], owned: Json | None
) -> Iterator[str]:
    keyed = {k: cast("Json", v) for k, v in (owned or {}).items() if k.startswith("k:")}
    if keyed:
        yield from _compare_keyed(path, asked, live, keyed)
        return
    if owned and any(k.startswith("v:") for k in owned):
        members = {msgspec.json.decode(k[2:]) for k in owned if k.startswith("v:")}
        if members != set(asked) or not members <= set(live):
            yield path
        return
    if len(asked) != len(live):
        yield path
        return
    for position, (one, other) in enumerate(zip(asked, live, strict=True)):
        yield from _compare(f"{path}[{position}]", one, other, None)


def _compare_keyed(
    path: str, asked: list[Any], live: list[Any], keyed: dict[str, Json]
) -> Iterator[str]:
    left = {name: cast("Json", msgspec.json.decode(name[2:])) for name in keyed}
    for position, item in enumerate(asked):
        name = next((n for n, keys in left.items() if _has_keys(item, keys)), None)
        if name is None:
            yield f"{path}[{position}]"
            continue
        keys = left.pop(name)
        found = next((i for i in live if _has_keys(i, keys)), None)
        label = next(iter(keys.values()), position)
        yield from _compare(f"{path}[{label}]", item, found, keyed[name])
    for keys in left.values():
        yield f"{path}[{next(iter(keys.values()), '')}]"


def _has_keys(item: Any, keys: Json) -> bool:
    """Whether a list's item is the one of those keys; a key it leaves out is a default."""
    if not isinstance(item, dict):
        return False
    had = cast("Json", item)
    return all(had.get(k, v) == v for k, v in keys.items()) and any(k in had for k in keys)


def _named(owned: Json) -> list[str]:
    return [k[2:] for k in owned if k.startswith("f:")]


def _empty(value: Any) -> bool:
    return value in ({}, [])
