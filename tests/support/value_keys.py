"""Keys of the original charts' values, from `fixtures/charts/keys`: a TOML file for each chart.

`[keys]` has the state of each key. `[values]` has the value that a key is set to, where one made
from the chart's default would not do. `[beside]` has what else is set for a key and all below it.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast, get_args

import yaml

from penstock.api.kubernetes.meta import Json
from support.charts import FIXTURES, defaults, resolved, schema

State = Literal["works", "rejected", "listed"]
STATES: frozenset[str] = frozenset(get_args(State))
Step = str | int
FIRST_NUMBER = 20_001
"""Of the numbers in values: no default has one, and each is a port."""
_STEP = re.compile(r'"([^"]+)"|\[(\d+)\]|([^.\["]+)')
_AMOUNT = re.compile(r"\d+(m|Mi|Gi|s|M|month|h|%)?")


@dataclass(frozen=True)
class ValueKey:
    """A key path of the original, and the value that it is tried with."""

    path: str
    state: str
    value: Any
    beside: Json

    @property
    def steps(self) -> tuple[Step, ...]:
        """Names and indexes; a name with dots is in quotes."""
        found = _STEP.findall(self.path)
        return tuple(int(index) if index else quoted or name for quoted, index, name in found)

    @property
    def token(self) -> str:
        """The value as text if it is unlike all others, else empty."""
        value = cast("list[Any]", self.value)[0] if isinstance(self.value, list) else self.value
        found = re.search(r"2\d{4}", str(value)) if not isinstance(value, bool) else None
        return found.group() if found else ""

    @property
    def name(self) -> str:
        """The last word of the path, which an error names."""
        return str([one for one in self.steps if isinstance(one, str)][-1])

    def given(self, values: Json) -> Json:
        """The values with the key set, and what it needs."""
        found = values
        for path, value in self.beside.items():
            found = put_at(found, ValueKey(path, "", None, {}).steps, value)
        return put_at(found, self.steps, self.value)

    def before(self, values: Json) -> Json:
        """The values with what the key needs, without the key."""
        found = values
        for path, value in self.beside.items():
            found = put_at(found, ValueKey(path, "", None, {}).steps, value)
        return found


def put_at(given: Any, steps: Sequence[Step], value: Any) -> Any:
    """A copy with another value at a path of names and indexes."""
    if not steps:
        return value
    first, *rest = steps
    if isinstance(first, int):
        items = copy.copy(cast("list[Any]", given)) if isinstance(given, list) else []
        items += [{}] * (first + 1 - len(items))
        items[first] = put_at(items[first], rest, value)
        return items
    found = dict(cast("Json", given)) if isinstance(given, dict) else {}
    found[first] = put_at(found.get(first), rest, value)
    return found


def get_at(given: Any, steps: Sequence[Step]) -> Any:
    """What is at a path; None where there is nothing."""
    for step in steps:
        if isinstance(step, int):
            items = cast("list[Any]", given) if isinstance(given, list) else []
            given = items[step] if step < len(items) else None
        else:
            given = cast("Json", given).get(step) if isinstance(given, dict) else None
    return given


@lru_cache
def keys(chart: str) -> tuple[ValueKey, ...]:
    """All keys of a chart."""
    file = tomllib.loads((FIXTURES / "keys" / f"{chart}.toml").read_text())
    return tuple(_keys(chart, file))


def _keys(chart: str, file: Json) -> Iterator[ValueKey]:
    values: Json = file.get("values", {})
    beside: Json = file.get("beside", {})
    for number, (path, state) in enumerate(file["keys"].items(), FIRST_NUMBER):
        needed: Json = {}
        for of, others in beside.items():
            if path == of or path.startswith((f"{of}.", f"{of}[")):
                needed |= others
        key = ValueKey(path, state, values.get(path), needed)
        if path not in values:
            key = ValueKey(path, state, _another(chart, key, number), key.beside)
        yield key


def _another(chart: str, key: ValueKey, number: int) -> Any:
    """A value unlike the usual one, of its type or of the schema's, with the number in it."""
    usual = get_at(everything(chart), key.steps)
    usual = get_at(defaults(chart), key.steps) if usual is None else usual
    node = _node(schema(chart), key.steps)
    word = f"w{number}"
    if others := [one for one in node.get("enum", ()) if one and one != usual]:
        return others[0]
    if isinstance(usual, bool):
        return not usual
    if isinstance(usual, int):
        return number
    if isinstance(usual, str) and (amount := _AMOUNT.fullmatch(usual)):
        return f"{number}{amount[1] or ''}"
    if isinstance(usual, str):
        return f"/{word}" if usual.startswith("/") else word
    types: Any = node.get("type", "array" if isinstance(usual, list) else "string")
    match types if isinstance(types, str) else next(one for one in types if one != "null"):
        case "boolean":
            return True
        case "integer" | "number":
            return number
        case "array":
            item = resolved(node.get("items") or {}, schema(chart))
            return [{"name": word} if "object" in item.get("type", "") else word]
        case "object":
            return {word: word}
        case _:
            return word


@lru_cache
def everything(chart: str) -> Json:
    """Values of the chart with everything on, if there are any."""
    file = FIXTURES / chart / "everything.yaml"
    return yaml.safe_load(file.read_text()) if file.exists() else {}


def _node(whole: Json, steps: Sequence[Step]) -> Json:
    node = whole
    for step in steps:
        node = resolved(node, whole)
        named = node.get("properties", {}).get(step, node.get("additionalProperties"))
        inner = node.get("items") if isinstance(step, int) else named
        if not isinstance(inner, dict):
            return {}
        node = cast("Json", inner)
    return resolved(node, whole)
