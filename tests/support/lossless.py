"""Fields that an object loses on its way through its type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from penstock.api.kubernetes.meta import KubeObject


def lost_fields(manifest: dict[str, Any], obj: KubeObject) -> list[str]:
    """Fields of a manifest that its decoded object lacks or has otherwise.

    Encoding leaves out a field that has its default; decoding without it must give the same object.
    """
    back = msgspec.json.decode(msgspec.json.encode(obj))
    return [
        f"{'.'.join(map(str, path))}: {wanted!r} became {found!r}"
        for path, wanted, found in _losses((), manifest, back)
        if not _is_default(path, manifest, obj)
    ]


_Path = tuple[str | int, ...]


def _losses(path: _Path, wanted: Any, found: Any) -> Iterator[tuple[_Path, Any, Any]]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        below = cast("dict[str, Any]", found)
        for key, value in cast("dict[str, Any]", wanted).items():
            yield from _losses((*path, key), value, below.get(key))
    elif isinstance(wanted, list) and isinstance(found, list):
        ours, theirs = cast("list[Any]", wanted), cast("list[Any]", found)
        if len(ours) != len(theirs):
            yield path, ours, theirs
        for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from _losses((*path, index), one, other)
    elif wanted != found:
        yield path, wanted, found


def _is_default(path: _Path, manifest: dict[str, Any], obj: KubeObject) -> bool:
    without = msgspec.json.decode(msgspec.json.encode(manifest))
    parent = without
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return msgspec.convert(without, type(obj)) == obj
