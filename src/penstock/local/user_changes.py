"""What users changed of objects that the demo made, by three values of each field.

`declared` is what the demo declares now, `last` what it declared when it applied the object last,
and `live` is the observed value. A user changed a field if its live value is not the last one, and
removed it if it is absent. A field that `last` lacks is new in this version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

Json = dict[str, Any]


@dataclass(frozen=True)
class Merged:
    """An object to apply, and the paths of fields that stay as somebody changed them."""

    document: Json
    kept: tuple[str, ...]


def merge(declared: Json, last: Json, live: Json) -> Merged:
    """The declared object with the changes of users in it.

    A changed field is applied with its live value: the same value of two field managers is no
    conflict. A list is one field.
    """
    kept: list[str] = []
    return Merged(_merge(declared, last, live, "", kept), tuple(kept))


def contains(live: object, value: object) -> bool:
    """Whether `live` is `value`, but for what the API server adds to it."""
    if isinstance(value, dict) and isinstance(live, dict):
        wanted, found = cast("Json", value), cast("Json", live)
        return all(key in found and contains(found[key], one) for key, one in wanted.items())
    if isinstance(value, list) and isinstance(live, list):
        items, others = cast("list[object]", value), cast("list[object]", live)
        return len(items) == len(others) and all(map(contains, others, items))
    return live == value


def _merge(declared: Json, last: Json, live: Json, path: str, kept: list[str]) -> Json:
    out: Json = {}
    for key, value in declared.items():
        place = f"{path}.{key}" if path else key
        if key not in live:
            # New in this version, or removed by somebody since.
            if key in last:
                kept.append(place)
            else:
                out[key] = value
        elif _is_map(value) and _is_map(live[key]):
            before: Json = last[key] if _is_map(last.get(key)) else {}
            out[key] = _merge(value, before, live[key], place, kept)
        elif contains(live[key], value) or (key in last and contains(live[key], last[key])):
            # Nobody changed it; this version may declare something else.
            out[key] = value
        else:
            kept.append(place)
            out[key] = live[key]
    return out


def _is_map(value: object) -> bool:
    return isinstance(value, dict)
