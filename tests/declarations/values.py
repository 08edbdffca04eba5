"""The values to declare at a property, from its schema, each with what must become of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from declarations import opaque, samples
from declarations.properties import (
    ABSENT,
    ITEM,
    KEY,
    OPAQUE,
    SAMPLE_KEY,
    Path,
    Property,
    at,
    dotted,
    put,
)
from penstock.api.kubernetes.meta import Json


class Verdict(StrEnum):
    """The expected answer of the API server."""

    TAKEN = "taken"
    REFUSED = "refused"
    ANY = "any"
    """Our schema does not decide; Kubernetes' own or the operator does."""


@dataclass(frozen=True, slots=True)
class Case:
    """One declaration: a whole spec that differs from that of the stage at one property."""

    kind: str
    path: Path
    what: str
    """Which sort of value it is: `present`, `minimum`, `wrong type`..."""
    value: Any
    spec: Json
    verdict: Verdict
    default: Any = None
    """The schema's value of an absent property."""

    @property
    def name(self) -> str:
        """For people."""
        shown = "absent" if self.value is ABSENT else repr(self.value)
        short = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return f"{self.kind} {dotted(self.path)} {self.what}: {short}"

    @property
    def field(self) -> str:
        """The field that a rejection must name, as the API server writes it."""
        steps = (
            "[0]" if step == ITEM else f".{SAMPLE_KEY if step == KEY else step}"
            for step in self.path
        )
        return "".join(steps).removeprefix(".")


_INT32 = 2**31
_WRONG: dict[str, Any] = {
    "string": 7,
    "integer": "seven",
    "boolean": "yes",
    "object": "text",
    "array": "text",
    "int-or-string": True,
}


def cases(prop: Property, root: Json) -> list[Case]:
    """All declarations of one property; `root` is the schema of its kind's spec."""
    found = [
        Case(
            prop.kind,
            prop.path,
            what,
            value,
            _spec(prop, root, value),
            verdict,
            prop.schema.get("default"),
        )
        for what, value, verdict in (
            *_present(prop),
            *_missing(prop),
            *_boundaries(prop),
            *_wrong(prop),
        )
    ]
    if prop.opaque:
        found += _open(prop, root)
    return found


def sample(prop: Property) -> Any:
    """A legal value of a property."""
    known = samples.legal(prop)
    if known:
        return known[0]
    schema = prop.schema
    if prop.type == "object":
        if prop.opaque and prop.path[-1] == ITEM:
            return opaque.CLAIM
        needed = cast("list[str]", schema.get("required", ()))
        fields = {name: _child(prop, name) for name in (*needed, *_named(prop))}
        if isinstance(inner := schema.get("additionalProperties"), dict):
            one = Property(prop.kind, (*prop.path, KEY), cast("Json", inner), False)
            return {SAMPLE_KEY: sample(one)}
        return fields
    if prop.type == "array":
        return [sample(Property(prop.kind, (*prop.path, ITEM), schema["items"], False))]
    if "enum" in schema:
        return next((one for one in schema["enum"] if one != schema.get("default")), "")
    if prop.type == "integer":
        return int(schema.get("minimum", 0)) + (3 if "maximum" not in schema else 1)
    if prop.type == "boolean":
        return not schema.get("default", False)
    return "sample"


def _named(prop: Property) -> list[str]:
    """A reference without a name is no use, though the schema has a default for it."""
    fields: Json = prop.schema.get("properties", {})
    return ["name"] if "default" in fields.get("name", {}) else []


def _child(prop: Property, name: str) -> Any:
    schema: Json = prop.schema["properties"][name]
    return sample(Property(prop.kind, (*prop.path, name), schema, True))


def _spec(prop: Property, root: Json, value: Any) -> Json:
    """The stage's spec with the value; parents on the way get what they need to be legal."""
    spec = samples.base(prop)
    schema = root
    for depth in range(2, len(prop.path)):
        step = prop.path[depth - 1]
        schema = _below(schema, step)
        path = prop.path[:depth]
        if schema.get("type") == "object" and OPAQUE not in schema:
            parent = Property(prop.kind, path, schema, False)
            whole = sample(parent)
            for key, inner in cast("Json", whole).items():
                if key not in _fields(spec, path[1:]) and key != SAMPLE_KEY:
                    spec = put(spec, (*path[1:], key), inner)
    return cast("Json", put(spec, prop.path[1:], value))


def _fields(spec: Any, path: Path) -> Json:
    found = at(spec, path)
    return cast("Json", found) if isinstance(found, dict) else {}


def _below(schema: Json, step: str) -> Json:
    if step == ITEM:
        return schema["items"]
    if step == KEY:
        return schema["additionalProperties"]
    return schema["properties"][step]


Value = tuple[str, Any, Verdict]


def _present(prop: Property) -> Iterator[Value]:
    known = samples.legal(prop)
    for value in known or [sample(prop)]:
        yield "present", value, Verdict.TAKEN
    if prop.type == "boolean":
        for value in (True, False):
            yield "enum", value, Verdict.TAKEN


def _missing(prop: Property) -> Iterator[Value]:
    gone = prop.path[-1] not in (ITEM, KEY)
    refused = prop.required and gone
    if gone:
        yield "absent", ABSENT, Verdict.REFUSED if refused else Verdict.TAKEN
        yield "null", None, Verdict.REFUSED if refused else Verdict.TAKEN
    schema = prop.schema
    match prop.type:
        case "string":
            if "enum" in schema:
                return
            free = not ("pattern" in schema or schema.get("minLength") or schema.get("format"))
            yield "empty", "", Verdict.ANY if free or _may_be_empty(prop) else Verdict.REFUSED
        case "array":
            yield "empty", [], Verdict.TAKEN
        case "object":
            if schema.get("required"):
                yield "empty", {}, Verdict.REFUSED
            else:
                yield "empty", {}, Verdict.ANY if _named(prop) else Verdict.TAKEN
        case "integer":
            low = int(schema.get("minimum", 0))
            yield "zero", 0, Verdict.TAKEN if low <= 0 else Verdict.REFUSED
        case _:
            return


def _may_be_empty(prop: Property) -> bool:
    pattern: str = prop.schema.get("pattern", "")
    return pattern.startswith("^(0|(([0-9]+)y)?") or pattern.endswith("|^$")


def _boundaries(prop: Property) -> Iterator[Value]:
    schema = prop.schema
    for member in schema.get("enum", ()):
        yield "enum", member, Verdict.TAKEN
    if "enum" in schema:
        yield "not in enum", "Sample", Verdict.REFUSED
    if "minimum" in schema:
        yield "minimum", schema["minimum"], Verdict.TAKEN
        yield "below minimum", schema["minimum"] - 1, Verdict.REFUSED
    elif prop.type == "integer":
        yield "negative", -1, Verdict.ANY
    if "maximum" in schema:
        yield "maximum", schema["maximum"], Verdict.TAKEN
        yield "above maximum", schema["maximum"] + 1, Verdict.REFUSED
    elif prop.type == "integer":
        yield "above int32", _INT32, Verdict.ANY
    if "maxLength" in schema and prop.type == "string":
        long = schema["maxLength"]
        yield "longest", "x" * long, Verdict.ANY
        yield "too long", "x" * (long + 1), Verdict.REFUSED
    if "maxItems" in schema:
        inner = sample(Property(prop.kind, (*prop.path, ITEM), schema["items"], False))
        many = schema["maxItems"] + 1
        yield "too many", [_numbered(inner, number) for number in range(many)], Verdict.REFUSED
    if "pattern" in schema:
        yield "against pattern", "!\n!", Verdict.REFUSED
    if schema.get("format") == "date-time":
        yield "against format", "tomorrow", Verdict.REFUSED


def _numbered(item: Any, number: int) -> Any:
    if not isinstance(item, dict):
        return item
    fields = cast("Json", item)
    return {**fields, **({"name": f"sample-{number}"} if "name" in fields else {})}


def _wrong(prop: Property) -> Iterator[Value]:
    yield "wrong type", _WRONG[prop.type], Verdict.REFUSED
    if prop.type in ("string", "integer", "boolean"):
        yield "wrong type", {"sample": 1}, Verdict.REFUSED
        yield "wrong type", ["sample"], Verdict.REFUSED


def _open(prop: Property, root: Json) -> Iterator[Case]:
    """Fields of Kubernetes below an open property: legal ones, and ones of another shape."""
    for name, value in opaque.table(prop.name).items():
        path = (*prop.path, name)
        if name in cast("Json", prop.schema.get("properties", {})):
            continue
        for what, one in (
            ("open", value),
            *(("misshapen", wrong) for wrong in opaque.misshapen(value)),
        ):
            beside = _beside(prop, root, name)
            spec = cast("Json", put(beside, path[1:], one))
            yield Case(prop.kind, path, what, one, spec, Verdict.TAKEN)
    unknown = (*prop.path, "sampleField")
    spec = cast("Json", put(_spec(prop, root, sample(prop)), unknown[1:], "yes"))
    yield Case(prop.kind, unknown, "unknown", "yes", spec, Verdict.TAKEN)


def _beside(prop: Property, root: Json, name: str) -> Json:
    kind = {}
    if name in opaque.NEEDS_LOAD_BALANCER:
        kind = {"type": "LoadBalancer"}
    elif name in opaque.NEEDS_OUTSIDE:
        kind = {"type": "NodePort"}
    return _spec(prop, root, kind or sample(prop))
