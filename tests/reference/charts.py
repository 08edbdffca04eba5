"""Values of the charts, from their schemas and values files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import yaml

from reference.page import Page, code, table
from reference.source import ROOT

Json = Mapping[str, Any]
CHARTS = (
    "slurm-operator",
    "slurm",
    "soperator",
    "slurm-cluster",
    "nodesets",
    "soperator-activechecks",
    "nfs-server",
    "penstock-monitoring",
)
_LONGEST = 60


def pages() -> list[Page]:
    """One page for each chart that has values."""
    return [_page(name) for name in CHARTS]


def _page(chart: str) -> Page:
    folder = ROOT / "charts" / chart
    schema: Json = json.loads((folder / "values.schema.json").read_text())
    text = (folder / "values.yaml").read_text()
    values: Json = yaml.safe_load(text)
    remarks = dict(_remarks(yaml.compose(text), text.split("\n"), ""))
    body = "\n".join(
        [
            "For platform engineers. Values that the charts of slurm-operator and soperator do not "
            "have are marked [Penstock].\n",
            table(
                ("Value", "Type", "Default", "Meaning"),
                (
                    (name, kind, default, words or remarks.get(name.strip("`"), ""))
                    for name, kind, default, words in _rows(schema, schema, values, "")
                ),
            ),
        ]
    )
    return Page(f"chart-{chart}", f"Values of the chart {chart}", f"values of chart {chart}", body)


def _rows(node: Json, schema: Json, values: Any, path: str) -> Iterator[tuple[str, str, str, str]]:
    for name, raw in cast("Json", node.get("properties") or {}).items():
        child = _resolved(raw, schema)
        here = f"{path}.{name}" if path else str(name)
        value = cast("Json", values).get(name) if isinstance(values, Mapping) else None
        inner = child.get("properties")
        default = "" if inner or value is None else json.dumps(value)
        if len(default) > _LONGEST:
            default = "see values.yaml"
        yield code(here), _type(child), code(default), _words(child)
        yield from _rows(child, schema, value, here)
        named = child.get("additionalProperties")
        entry = _resolved(cast("Json", named if isinstance(named, Mapping) else {}), schema)
        items = _resolved(child.get("items") or {}, schema)
        if items.get("properties"):
            yield from _rows(items, schema, None, f"{here}[]")
        elif entry.get("properties"):
            yield from _rows(entry, schema, None, f"{here}.NAME")


def _remarks(node: Any, lines: Sequence[str], path: str) -> Iterator[tuple[str, str]]:
    """Comments of values.yaml by value: at the end of its line, or on the line above."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in cast("list[tuple[Any, Any]]", node.value):
        here = f"{path}.{key.value}" if path else str(key.value)
        line: int = key.start_mark.line
        _, mark, remark = lines[line].partition("  # ")
        above = lines[line - 1].strip() if line else ""
        if not mark and above.startswith("# "):
            mark, remark = above[:2], above[2:]
        if mark:
            yield here, f"{remark[:1].upper()}{remark[1:].rstrip('.')}."
        yield from _remarks(value, lines, here)


def _resolved(node: Json, schema: Json) -> Json:
    reference: str = node.get("$ref") or ""
    if not reference:
        return node
    found: Any = schema
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return {**found, **{key: value for key, value in node.items() if key != "$ref"}}


def _type(node: Json) -> str:
    if "enum" in node:
        return ", ".join(code(json.dumps(one)) for one in node["enum"])
    kinds: Any = node.get("type") or "anything"
    return kinds if isinstance(kinds, str) else " or ".join(one for one in kinds if one != "null")


def _words(node: Json) -> str:
    return str(node.get("description") or "")
