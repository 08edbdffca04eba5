"""Dashboards name series that exist, and Grafana's files are those of the code.

S117.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dashboards.all import DASHBOARDS
from dashboards.files import FOLDER, files, stale, write
from dashboards.model import Panel, Shape
from dashboards.promql import names, tokens
from dashboards.sources import KNOWN
from penstock.api.kubernetes.meta import Json

PANELS = [
    pytest.param(panel, id=f"{one.name}: {panel.title}")
    for one in DASHBOARDS
    for panel in one.panels()
]
GRID = 24


def test_the_files_are_those_of_the_code() -> None:
    """`make dashboards` writes them."""
    assert not list(stale())


def test_a_file_that_differs_or_is_none_any_more_is_stale(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "dashboards/jobs.json").write_text("{}")
    (tmp_path / "former.json").write_text("{}")
    assert list(stale(tmp_path)) == ["dashboards/jobs.json", "former.json"]
    write(tmp_path)
    assert not list(stale(tmp_path))


@pytest.mark.parametrize("panel", PANELS)
def test_a_query_names_series_of_the_catalogue(panel: Panel) -> None:
    for query in panel.queries:
        found = names(query.text)
        assert found
        assert {one for one in found if not one.startswith("~")} <= KNOWN


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_has_a_help_text_and_names_its_series(panel: Panel) -> None:
    assert panel.about.endswith(".")
    if len(panel.queries) > 1:
        assert all(query.legend for query in panel.queries)
    if panel.shape is Shape.TABLE:
        assert panel.columns


def documents() -> dict[str, Json]:
    found = files()
    return {name: json.loads(found[f"dashboards/{name}.json"]) for name in all_names()}


def all_names() -> list[str]:
    return [one.name for one in DASHBOARDS]


@pytest.mark.parametrize("name", all_names())
def test_the_reader_chooses_prometheus_and_the_cluster(name: str) -> None:
    document: Any = documents()[name]
    source, namespace = document["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    assert namespace["query"].endswith(", namespace)")
    for panel in document["panels"]:
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${datasource}"
            assert 'namespace="$namespace"' in target["expr"]


@pytest.mark.parametrize("name", all_names())
def test_panels_fill_their_rows_and_do_not_overlap(name: str) -> None:
    document: Any = documents()[name]
    taken: set[tuple[int, int]] = set()
    numbers = [panel["id"] for panel in document["panels"]]
    assert len(set(numbers)) == len(numbers)
    for panel in document["panels"]:
        place: Json = panel["gridPos"]
        assert place["x"] + place["w"] <= GRID
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_addresses_and_titles_of_dashboards_are_their_own() -> None:
    assert len({one.uid for one in DASHBOARDS}) == len(DASHBOARDS)
    assert len({one.title for one in DASHBOARDS}) == len(DASHBOARDS)
    assert FOLDER.is_dir()


@pytest.mark.parametrize(
    ("expr", "found"),
    [
        ('sum by (a, b) (rate(c_total{d="e"}[5m])) > 0', {"c_total"}),
        ("a / on (b) group_left (c) d", {"a", "d"}),
        ('count({__name__=~"a|b"}) or (c unless on () d)', {"~a|b", "c", "d"}),
        ("histogram_quantile(0.9, sum by (le) (a_bucket))", {"a_bucket"}),
        ("1e6 * a offset 1d - time()", {"a"}),
    ],
)
def test_series_are_read_from_an_expression(expr: str, found: set[str]) -> None:
    assert names(expr) == found


def test_text_that_is_no_expression_is_rejected() -> None:
    with pytest.raises(ValueError, match="no PromQL at '; drop'"):
        list(tokens("a ; drop"))
