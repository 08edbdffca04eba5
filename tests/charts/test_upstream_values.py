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
from support.charts import FIXTURES, put, render

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

PAGE = Path(__file__).parents[2] / "docs" / "helm.md"
HEADING = "## Values without effect\n"


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
def listed() -> frozenset[str]:
    """What the page says to have no effect: the list, and rows of its tables that begin so."""
    page = PAGE.read_text()
    section = page.partition(HEADING)[2].partition("\n## ")[0]
    own = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    rows = re.findall(r"^\| (`[^|]+`) \|[^|]*\| Without effect", page, re.MULTILINE)
    return frozenset(name for row in (*own, *rows) for name in re.findall(r"`([^`]+)`", row))


def is_listed(key: Key) -> bool:
    entry = re.sub(r"^(nodesets|loginsets)\.a\.", r"\1.NAME.", key.path)
    return any(entry == name or entry.startswith(f"{name}.") for name in listed())


def fault(chart: str, key: Key) -> str | None:
    """Why a user would be left in the dark."""
    before = render(key.given, chart=chart)
    try:
        after = render(put(key.given, steps(key.path), key.value), chart=chart)
    except LocalError as refused:
        return None if steps(key.path)[-1] in str(refused) else f"{key}: refused as {refused}"
    return None if before != after or is_listed(key) else f"{key}: without effect, and not listed"


@pytest.mark.parametrize("chart", ["slurm", "slurm-operator"])
def test_every_value_of_upstream_works_or_is_rejected_by_name_or_is_listed(chart: str) -> None:
    """F21, S033."""
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(partial(fault, chart), keys(chart)))
    assert [one for one in found if one is not None] == []


def test_what_is_listed_exists() -> None:
    """A row about a value that nobody has is a mistake in the page."""
    known = {
        re.sub(r"^(nodesets|loginsets)\.a\.", r"\1.NAME.", key.path)
        for chart in ("slurm", "slurm-operator")
        for key in keys(chart)
    }
    section = PAGE.read_text().partition(HEADING)[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert names
    assert names <= known
