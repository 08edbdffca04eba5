"""docs/helm.md lists the values that the schemas have. `PENSTOCK_WRITE_DOCS=1` writes it anew."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from support.charts import at, defaults, resolved, schema

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    "slurm": DOCS / "helm.md",
    "slurm-operator": DOCS / "helm.md",
    "slurm-cluster": DOCS / "helm-slurmcluster.md",
    "nodesets": DOCS / "helm-slurmcluster.md",
    "soperator": DOCS / "helm-soperator.md",
}
BEGIN = "<!-- values of {}: written by PENSTOCK_WRITE_DOCS=1 pytest tests/charts/test_docs.py -->\n"
END = "<!-- end -->"
PARTS = (
    "container",
    "podSpec",
    "service",
    "metadata",
    "resources",
    "image",
    "conf",
    "external",
    "sidecar",
    "security",
)
"""Shapes that stand in many places: their fields are told once."""
ENTRIES = ("loginset", "nodeset")
LISTED = "#/$defs/entry"
"""Items of a list whose fields have rows."""


@pytest.mark.parametrize("chart", PAGES)
def test_the_page_lists_every_value(chart: str) -> None:
    page, begin = PAGES[chart], BEGIN.format(chart)
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(END)
    wanted = f"{before}{begin}{table(chart)}{END}{after}"
    if os.environ.get("PENSTOCK_WRITE_DOCS"):
        page.write_text(wanted)
    assert page.read_text() == wanted


def table(chart: str) -> str:
    whole, usual = schema(chart), defaults(chart)
    lines = ["| Value | Default | Meaning |", "| --- | --- | --- |"]
    lines += rows(whole, whole, usual, ())
    for part in PARTS:
        if (
            chart in ("slurm", "slurm-cluster", "nodesets")
            and part in whole["$defs"]
            and "properties" in whole["$defs"][part]
        ):
            lines += rows(whole["$defs"][part], whole, {}, (f"*{part}*",))
    return "\n".join(lines) + "\n"


def rows(node: Json, whole: Json, usual: Json, path: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for name, inner in node.get("properties", {}).items():
        child = resolved(inner, whole)
        here = (*path, name)
        part = str(inner.get("$ref", "")).rpartition("/")[2]
        default = at(usual, here)
        closed = part in PARTS or (part in ENTRIES and not name.endswith("Defaults"))
        if "properties" in child and not closed:
            found += rows(child, whole, usual, here)
            continue
        meaning = child.get("description", "")
        if part in PARTS:
            meaning += f" (*{part}*)"
        line = f"| `{'.'.join(here)}` | {_shown(default)} | {meaning} |"
        found.append(line.replace("`*", "`").replace("*.", "."))
        if child.get("items", {}).get("$ref") == LISTED:
            found += rows(resolved(child["items"], whole), whole, {}, (*path, f"{name}[]"))
            continue
        entry = resolved(child.get("additionalProperties") or {}, whole)
        if "properties" in entry and name == "partitions":
            found += rows(entry, whole, {}, (*here, "NAME"))
    return found


def _shown(default: Any) -> str:
    """A default that fits into a cell; the others are in values.yaml."""
    simple = isinstance(default, (bool, int)) or (isinstance(default, str) and default)
    return f"`{json.dumps(default)}`" if simple and "\n" not in str(default) else ""
