"""JSON merge patches that have each field of what they make."""

from __future__ import annotations

from typing import Any, cast

Json = dict[str, Any]


def whole_patch(old: Json, new: Json) -> Json:
    """All fields of `new`, and null for those of `old` that go, at each depth (RFC 7386)."""
    patch: Json = dict.fromkeys(old.keys() - new.keys())
    for key, after in new.items():
        before = old.get(key)
        nested = isinstance(before, dict) and isinstance(after, dict)
        patch[key] = whole_patch(cast("Json", before), cast("Json", after)) if nested else after
    return patch
