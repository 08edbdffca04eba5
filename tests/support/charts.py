"""Our charts as Helm renders them, and their schemas of values."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.base import yaml_text
from penstock.local.charts import CHARTS, helm, objects, rendered
from penstock.local.errors import LocalError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "charts"
FILES = sorted(path.name for path in FIXTURES.glob("*.yaml"))
EVERYTHING = "f21-everything.yaml"
REGISTRY = "registry.example.com/penstock"
MONITORS = ("monitoring.coreos.com/v1",)
"""The Prometheus operator's kinds, for `api_versions`."""
IMAGES = (
    "slurm-operator",
    "slurm-cluster",
    "soperator",
    "nodesets",
    "nfs-server",
    "soperator-activechecks",
)
"""Charts whose objects name images always."""


def values(name: str) -> Json:
    """A values file of the fixtures."""
    return copy.deepcopy(_read(FIXTURES / name))


@lru_cache
def _read(path: Path) -> Json:
    return cast("Json", yaml_text.document(path.read_text()))


def render(
    given: Mapping[str, Any] | None = None,
    *,
    chart: str = "slurm",
    release: str = "slurm",
    namespace: str = "slurm",
    api_versions: tuple[str, ...] = (),
) -> dict[str, Json]:
    """The objects of a release, by `Kind name`; the second of a name has its namespace as well.

    Charts that name images need a registry: they get one where the values have no `global`.
    """
    needed: Json = {"global": {"imageRegistry": REGISTRY}} if Path(chart).name in IMAGES else {}
    text = json.dumps({**needed, **(given or {})})
    found = objects(_rendered(chart, release, namespace, text, api_versions))
    named: dict[str, Json] = {}
    for one in found:
        kind, meta = one["kind"], one["metadata"]
        name = f"{kind} {meta['name']}"
        named[name if name not in named else f"{kind} {meta['namespace']}/{meta['name']}"] = one
    assert len(named) == len(found), "two objects have one name"
    return named


@lru_cache(maxsize=64)
def _rendered(
    chart: str, release: str, namespace: str, given: str, api_versions: tuple[str, ...] = ()
) -> str:
    return rendered(chart, release, namespace, json.loads(given), api_versions)


def text(given: Mapping[str, Any]) -> str:
    """What `helm template` prints for the chart `slurm`."""
    return _rendered("slurm", "slurm", "slurm", json.dumps(given))


def rejection(given: Mapping[str, Any], *, chart: str = "slurm") -> str:
    """Helm's error about invalid values."""
    with pytest.raises(LocalError) as refused:
        render(given, chart=chart)
    return str(refused.value)


def copy_with_notes(chart: str, folder: Path) -> str:
    """A copy of a chart whose notes are an object: Helm shows notes only to a cluster."""
    made = folder / chart
    shutil.copytree(CHARTS / chart, made)
    text = (made / "templates" / "NOTES.txt").read_text()
    (made / "templates" / "notes.yaml").write_text(
        f'{{{{- define "notes" }}}}{text}{{{{ end -}}}}\n'
        "apiVersion: v1\nkind: Notes\nmetadata: {name: notes}\n"
        'text: {{ include "notes" . | toJson }}\n'
    )
    return str(made)


def notes(chart: str, given: Mapping[str, Any], namespace: str) -> str:
    """Helm's output after an install, from a chart of `copy_with_notes`."""
    found = render(given, chart=chart, release=Path(chart).name, namespace=namespace)
    return found["Notes notes"]["text"]


def lint(chart: str, *arguments: str) -> str:
    """Output of `helm lint`."""
    return helm("lint", str(CHARTS / chart), *arguments)


@lru_cache
def schema(chart: str) -> Json:
    """The chart's values.schema.json."""
    return cast("Json", json.loads((CHARTS / chart / "values.schema.json").read_text()))


def defaults(chart: str) -> Json:
    """The chart's values.yaml."""
    return cast("Json", yaml_text.document((CHARTS / chart / "values.yaml").read_text()))


@dataclass(frozen=True)
class Leaf:
    """A value that a user may set: its path and its schema."""

    path: tuple[str, ...]
    node: Json
    description: str

    def __str__(self) -> str:
        return ".".join(self.path)


def resolved(node: Json, whole: Json) -> Json:
    """A node of the schema with its reference put in place; its own words win."""
    reference = node.get("$ref")
    if reference is None:
        return node
    target = resolved(whole["$defs"][reference.rpartition("/")[2]], whole)
    return {**target, **{key: value for key, value in node.items() if key != "$ref"}}


def leaves(node: Json, whole: Json, path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """All values below a node. An entry of any name stands as `*`."""
    for name, inner in node.get("properties", {}).items():
        child = resolved(inner, whole)
        if "properties" in child:
            yield from leaves(child, whole, (*path, name))
        else:
            entry = resolved(child.get("additionalProperties") or {}, whole)
            if "properties" in entry:
                yield from leaves(entry, whole, (*path, name, "*"))
            else:
                yield Leaf((*path, name), child, child.get("description", ""))


def at(given: Any, path: Sequence[str]) -> Any:
    """What is at a path; None where there is nothing."""
    for name in path:
        given = cast("Json", given).get(name) if isinstance(given, dict) else None
    return given


def put(given: Json, path: Sequence[str], value: Any) -> Json:
    """A copy with another value at a path."""
    changed = copy.deepcopy(given)
    inner = changed
    for name in path[:-1]:
        if not isinstance(inner.get(name), dict):
            inner[name] = {}
        inner = cast("Json", inner[name])
    inner[path[-1]] = value
    return changed


def another(value: Any, node: Json, whole: Json, word: str = "another") -> Any:
    """A value that the schema takes and that is not `value`, with the word in it if it is text."""
    if "enum" in node:
        return next(one for one in node["enum"] if one and one != value)
    told: Any = node["type"]
    types: list[str] = [told] if isinstance(told, str) else told
    # Where both a mapping and a text are taken, the present value decides which is meant.
    mapping = isinstance(value, dict) and "object" in types
    match "object" if mapping else next(one for one in types if one != "null"):
        case "boolean":
            return not value
        case "integer" | "number":
            top, number = int(node.get("maximum", 2**31 - 1)), int(cast("int | str", value or 0))
            return number - 1 if number == top else number + 1
        case "array":
            more = [_item(resolved(node.get("items") or {}, whole), whole, word)]
            return [*(value or ()), *more * int(node.get("minItems", 1))]
        case "object":
            extra: Any = node.get("additionalProperties") or {}
            text_ = "string" in cast("Json", extra).get("type", "string")
            return {**cast("Json", value or {}), word: word if text_ else 7}
        case _:
            return word


def _item(node: Json, whole: Json, word: str) -> Any:
    if "examples" in node:
        return node["examples"][0]
    if node.get("type") == "integer":
        return 7
    if "object" not in node.get("type", "string"):
        return word
    known: Json = node.get("properties", {})
    required: list[str] = node.get("required", [])
    made = {
        name: another(None, resolved(known[name], whole), whole, word) if name in known else word
        for name in required
    }
    return made or {"name": word}


def without_effect(chart: str) -> set[str]:
    """The values that a chart's schema describes as without effect."""
    if not (CHARTS / chart / "values.schema.json").exists():
        return set()
    whole = schema(chart)
    return {str(one) for one in leaves(whole, whole) if one.description.startswith("Without eff")}
