"""Each value that slurm-operator's charts and pages have works, is refused by name, or is listed.

Covers F21 and S033: a values file that is brought along does what it says, or tells where not.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.local.errors import LocalError
from support.charts import FIXTURES, MONITORS, put, render, without_effect

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

DOCS = Path(__file__).parents[2] / "docs"
SLINKY, NEBIUS = "slurm and slurm-operator", "soperator and soperator-crds"
CHARTS = {"slurm": SLINKY, "slurm-operator": SLINKY, "soperator": NEBIUS}
"""The section of each chart in the page."""
PAGE = DOCS / "platform/values-without-effect.md"


@dataclass(frozen=True)
class Key:
    """A key path with a value, and the values it is looked at with."""

    path: str
    value: Any
    given: Json

    def __str__(self) -> str:
        return f"{self.path}: {self.value}"


def keys(chart: str) -> list[Key]:
    told: Json = yaml.safe_load((FIXTURES / "upstream" / f"{chart}.yaml").read_text())
    found: list[Key] = []
    for path, value, *more in told["keys"]:
        given: Json = told["base"]
        needs: Json = more[0] if more else {}
        for other, needed in needs.items():
            given = put(given, steps(other), needed)
        found.append(Key(path, value, given))
    return found


def steps(path: str) -> list[str]:
    return path.split(".")


@lru_cache
def section(charts: str) -> str:
    """The part of the page about these charts."""
    return PAGE.read_text().partition(f"## Charts {charts}\n")[2].partition("\n## ")[0]


@lru_cache
def listed(charts: str) -> frozenset[str]:
    """What the page lists as without effect, and what the schemas describe so."""
    rows = re.findall(r"^\| (`.*?) \|", section(charts), re.MULTILINE)
    found = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    return frozenset(found.union(*map(without_effect, charts.split(" and "))))


def is_listed(chart: str, key: Key) -> bool:
    entry = re.sub(r"^(nodesets|loginsets)\.a\.", r"\1.NAME.", key.path)
    return any(entry == name or entry.startswith(f"{name}.") for name in listed(CHARTS[chart]))


def fault(chart: str, key: Key) -> str | None:
    """Why a user would be left in the dark."""
    before = render(key.given, chart=chart, api_versions=MONITORS)
    try:
        after = render(
            put(key.given, steps(key.path), key.value), chart=chart, api_versions=MONITORS
        )
    except LocalError as refused:
        return None if steps(key.path)[-1] in str(refused) else f"{key}: refused as {refused}"
    return (
        None
        if before != after or is_listed(chart, key)
        else f"{key}: without effect, and not listed"
    )


@pytest.mark.parametrize("chart", CHARTS)
def test_every_value_of_upstream_works_or_is_rejected_by_name_or_is_listed(chart: str) -> None:
    """F21, S033."""
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(partial(fault, chart), keys(chart)))
    assert [one for one in found if one is not None] == []


@pytest.mark.parametrize("page", sorted(set(CHARTS.values())))
def test_what_is_listed_exists(page: str) -> None:
    """A row about a value that nobody has is a mistake in the page."""
    known = {
        re.sub(r"^(nodesets|loginsets)\.a\.", r"\1.NAME.", key.path)
        for chart, of in CHARTS.items()
        if of == page
        for key in keys(chart)
    }
    rows = re.findall(r"^\| (`.*?) \|", section(page), re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert names
    assert {one for one in names if not any(key.startswith(f"{one}.") for key in known)} <= known
