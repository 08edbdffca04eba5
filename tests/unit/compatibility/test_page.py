"""docs/compatibility.md is what its rows and the tests say. `PENSTOCK_WRITE_DOCS=1` writes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support import compatibility
from support.compatibility import (
    TESTS,
    Elsewhere,
    Place,
    Row,
    State,
    elsewhere,
    ids,
    layers,
    load,
    missing_layers,
    named,
    named_elsewhere,
    of_name,
    page,
)

PAGE = TESTS.parent / "docs" / "compatibility.md"
BEGIN = (
    "<!-- written by PENSTOCK_WRITE_DOCS=1 pytest tests/unit/compatibility, "
    "from tests/compatibility -->\n"
)
GROUPS = load()
ROWS = [row for group in GROUPS for row in group.rows]
LEFT = elsewhere()
NAMED = named()
LAYERS = layers()
SCENARIOS = ids("S001 to S180")


def test_the_page_is_generated_from_rows_and_tests() -> None:
    before, _, _ = PAGE.read_text().partition(BEGIN)
    wanted = f"{before}{BEGIN}\n{page(GROUPS, NAMED, LEFT)}"
    if os.environ.get("PENSTOCK_WRITE_DOCS"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted


def test_every_feature_defect_and_scenario_has_its_row() -> None:
    """A scenario has one, or the capability that builds it is named."""
    catalogue = ids("feature rows 1 to 69, D1 to D73, D80 to D82") + SCENARIOS
    left = [one for part in LEFT for one in part.rows]
    assert sorted([row.id for row in ROWS] + left) == sorted(catalogue)


def test_every_id_that_a_test_names_exists() -> None:
    known = {row.id for row in ROWS} | {one for part in LEFT for one in part.rows}
    assert {one: places for one, places in NAMED.items() if one not in known} == {}


def test_a_row_that_is_done_has_a_test_that_names_it() -> None:
    assert [row.id for row in ROWS if row.state == "done" and row.id not in NAMED] == []


def test_every_layer_of_a_scenario_has_a_test_that_names_it() -> None:
    assert missing_layers(ROWS, NAMED, LAYERS) == []


def test_a_scenario_that_a_test_names_has_a_row() -> None:
    assert named_elsewhere(LEFT, NAMED) == []


def test_every_scenario_has_its_layers() -> None:
    assert list(LAYERS) == SCENARIOS


def row(state: State) -> Row:
    return Row("S001", "Install", "a", "b", state, *(("c", "d") if state != "done" else ()))


@pytest.mark.parametrize("state", ["done", "partly"])
def test_a_layer_without_a_test_is_named_with_its_row(state: State) -> None:
    tests = {"S001": [Place("api/test_x.py", "test_one"), Place("charts/test_y.py")]}
    wanted = {"S001": ("unit", "api", "e2e")}
    assert missing_layers([row(state)], tests, wanted) == [
        "S001 (Install): no test under tests/e2e names it"
    ]
    assert missing_layers([row(state)], {}, {"S001": ("unit",)}) == [
        "S001 (Install): no test under tests/unit or tests/charts names it"
    ]


def test_a_row_that_is_open_needs_no_test_of_any_layer() -> None:
    assert missing_layers([row("open")], {}, {"S001": ("unit", "e2e")}) == []


def test_a_scenario_without_a_row_is_reported_when_a_test_names_it() -> None:
    left = [Elsewhere("no release yet", "a", {"S001": "One", "S002": "Two"})]
    assert named_elsewhere(left, {"S002": [Place("e2e/test_x.py", "test_it")]}) == [
        "S002 (Two): e2e/test_x.py names it, so it leaves elsewhere.toml for a row"
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[part]]\nbuilt_by = "soon"\nabout = "a"\n[part.rows]\nS001 = "One"', "S001 is 'soon'"),
        ('[[part]]\nabout = "a"\n[part.rows]\nS001 = "One"', "S001 is None, not one of"),
        ('[[part]]\nbuilt_by = "no release yet"\nabout = "a"\n[part.rows]\nS001 = " "', "no title"),
    ],
)
def test_a_scenario_without_a_row_names_the_capability_for_it(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "elsewhere.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        elsewhere(path)


@pytest.mark.parametrize("text", ['S001 = ["unit", "field"]', "S001 = []"])
def test_an_unknown_layer_is_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "layers.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"layers.toml: S001: layers are some of unit, model, api"):
        layers(path)


def test_ids_are_read_one_by_one_as_lists_and_as_ranges() -> None:
    assert ids("S001 (one half), D7.") == ["S001", "D7"]
    assert ids("S001 to S003; D9 to D11") == ["S001", "S002", "S003", "D9", "D10", "D11"]
    assert ids("Feature rows 57 and 58, 60 to 61; feature 3") == [
        f"feature {number}" for number in (57, 58, 60, 61, 3)
    ]
    assert ids("fixture F14, 3D7, D1234 and a feature of 3 nodes") == []


def test_the_name_of_a_test_may_name_rows() -> None:
    assert of_name("test_d37_a_chart_of_another_version") == ["D37"]
    assert of_name("test_feature_14_and_s072") == ["feature 14", "S072"]
    assert of_name("test_the_2d3_of_it") == []


def test_a_file_stands_for_what_none_of_its_tests_names(tmp_path: Path) -> None:
    text = '''"""D1 and D2."""
class TestIt:
    """D3."""
    def test_one(self):
        """D2."""
def helper():
    """D4."""
async def test_d5(): ...
'''
    (tmp_path / "test_x.py").write_text(text)
    assert named(tmp_path) == {
        "D1": [Place("test_x.py")],
        "D2": [Place("test_x.py", "TestIt.test_one")],
        "D3": [Place("test_x.py")],
        "D5": [Place("test_x.py", "test_d5")],
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ('state = "done"\nmissing = "a part"', "a row that is not done"),
        ('state = "partly"', "a row that is not done"),
        ('state = "open"\nmissing = "all"', "says what was tried"),
        ('state = "partly"\nmissing = "a part"', "says what was tried"),
        ('state = "soon"', "state is one of done, partly, open"),
        ('state = "done"\nnote = "x"', "note means nothing"),
    ],
)
def test_a_row_that_does_not_name_what_is_missing_is_rejected(
    tmp_path: Path, given: str, words: str
) -> None:
    row = f'[[row]]\nid = "D1"\nwhat = "a"\nupstream = "b"\nours = "c"\n{given}\n'
    (tmp_path / "one.toml").write_text(f'title = "t"\nabout = "a"\n{row}')
    with pytest.raises(ValueError, match=f"one.toml: D1: .*{words}"):
        compatibility.load(tmp_path)
