"""Label and field selectors, as in list and watch requests.

Source: Kubernetes documentation, "Labels and Selectors", "Field Selectors".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

from penstock.api.kubernetes.meta import Json

Matches = Callable[[Json], bool]
_PART = re.compile(r"[^,(]+(?:\([^)]*\))?")
_SET = re.compile(r"(\S+)\s+(in|notin)\s*\(([^)]*)\)")


@lru_cache(maxsize=256)
def matcher(labels: str, fields: str) -> Matches | None:
    """Whether an object is selected; None when all are."""
    tests = [_label(part.strip()) for part in _PART.findall(labels) if part.strip()]
    tests += [_field(part.strip()) for part in fields.split(",") if part.strip()]
    if not tests:
        return None
    return lambda obj: all(test(obj) for test in tests)


def selects(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector's `matchLabels` select these labels; an empty one selects all."""
    wanted = cast("dict[str, str]", selector.get("matchLabels") or {})
    return all(labels.get(key) == value for key, value in wanted.items())


def _label(part: str) -> Matches:
    found = _SET.fullmatch(part)
    if found:
        key, values = found[1], {one.strip() for one in found[3].split(",")}
        among = found[2] == "in"
        return lambda obj: (_labels(obj).get(key) in values) is among
    key, equal, value = part.partition("!=")
    if equal:
        return lambda obj: _labels(obj).get(key) != value
    key, equal, value = part.replace("==", "=").partition("=")
    if equal:
        return lambda obj: _labels(obj).get(key) == value
    if part.startswith("!"):
        return lambda obj: part[1:] not in _labels(obj)
    return lambda obj: part in _labels(obj)


def _field(part: str) -> Matches:
    path, _, value = part.replace("==", "=").partition("=")
    negated = path.endswith("!")
    steps = path.rstrip("!").split(".")
    return lambda obj: (_at(obj, steps) == value) is not negated


def _labels(obj: Json) -> Mapping[str, str]:
    return cast("Mapping[str, str]", obj["metadata"].get("labels") or {})


def _at(obj: Json, steps: list[str]) -> str:
    value: Any = obj
    for step in steps:
        value = cast("Json", value).get(step) if isinstance(value, dict) else None
    return value or ""
