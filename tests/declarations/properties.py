"""Every property that a definition's schema names, and how to write a value there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, cast

from penstock.api import crd
from penstock.api.kubernetes.meta import Json
from penstock.api.penstock import group as penstock
from penstock.api.slinky import group as slinky

ITEM: Final = "[]"
"""A step of a path: the first item of a list."""
KEY: Final = "*"
"""A step of a path: one key of a map, which is called `sample`."""
SAMPLE_KEY: Final = "sample"
OPAQUE: Final = "x-kubernetes-preserve-unknown-fields"

Path = tuple[str, ...]


class Absent(Enum):
    """The value of what is not declared at all."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Property:
    """One property of a kind's spec."""

    kind: str
    path: Path
    schema: Json
    required: bool

    @property
    def name(self) -> str:
        """The path as people write it: `spec.configFileRefs[].name`."""
        return dotted(self.path)

    @property
    def type(self) -> str:
        """Type in the schema; `int-or-string` for such."""
        if "anyOf" in self.schema:
            return "int-or-string"
        return cast("str", self.schema.get("type", "object"))

    @property
    def opaque(self) -> bool:
        """Whether fields that the schema does not name are kept."""
        return bool(self.schema.get(OPAQUE))


def dotted(path: Path) -> str:
    """A path as people write it."""
    return "".join(step if step == ITEM else f".{step}" for step in path).removeprefix(".")


KINDS = (*slinky.GROUP.kinds, *penstock.GROUP.kinds)
"""Kinds whose declarations are generated."""


def schemas() -> dict[str, Json]:
    """The schema of each kind's spec, by kind, as `deploy/crds` has it."""
    return {info.resource.kind: crd.schema(info)["properties"]["spec"] for info in KINDS}


def properties(kind: str, spec: Json) -> list[Property]:
    """All properties below a kind's spec, parents before their children."""
    return list(_below(kind, ("spec",), spec))


def _below(kind: str, path: Path, schema: Json) -> Iterator[Property]:
    required = set(cast("list[str]", schema.get("required", ())))
    children: list[tuple[str, Json, bool]] = [
        (name, child, name in required)
        for name, child in cast("dict[str, Json]", schema.get("properties", {})).items()
    ]
    if isinstance(schema.get("items"), dict):
        children.append((ITEM, schema["items"], False))
    if isinstance(schema.get("additionalProperties"), dict):
        children.append((KEY, schema["additionalProperties"], False))
    for name, child, needed in children:
        yield Property(kind, (*path, name), child, needed)
        yield from _below(kind, (*path, name), child)


def at(value: Any, path: Path) -> Any:
    """The value at a path; ABSENT if there is none."""
    for step in path:
        if step == ITEM:
            items = cast("list[Any]", value) if isinstance(value, list) else []
            value = items[0] if items else ABSENT
        elif isinstance(value, dict):
            fields = cast("Json", value)
            value = fields.get(SAMPLE_KEY if step == KEY else step, ABSENT)
        else:
            return ABSENT
    return value


def put(value: Any, path: Path, new: Any) -> Any:
    """`value` with `new` at a path; what leads there is made as needed."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if step == ITEM:
        items = list(cast("list[Any]", value)) if isinstance(value, list) else []
        child = put(items[0] if items else None, rest, new)
        return items[1:] if child is ABSENT else [child, *items[1:]]
    name = SAMPLE_KEY if step == KEY else step
    fields = dict(cast("Json", value)) if isinstance(value, dict) else {}
    child = put(fields.get(name), rest, new)
    if child is ABSENT:
        fields.pop(name, None)
    else:
        fields[name] = child
    return fields


def laid_over(base: Json, over: Json) -> Json:
    """`over` on `base`, map by map; null takes a field away."""
    out = dict(base)
    for key, value in over.items():
        old = out.get(key)
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict) and isinstance(old, dict):
            out[key] = laid_over(cast("Json", old), cast("Json", value))
        else:
            out[key] = value
    return out
