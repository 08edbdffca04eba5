"""docs/compatibility.md is what its rows and the tests say. `PENSTOCK_WRITE_DOCS=1` writes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support import compatibility
from support.compatibility import TESTS, Place, elsewhere, ids, load, named, of_name, page

PAGE = TESTS.parent / "docs" / "compatibility.md"
BEGIN = (
    "<!-- written by PENSTOCK_WRITE_DOCS=1 pytest tests/unit/compatibility, "
    "from tests/compatibility -->\n"
)
GROUPS = load()
ROWS = [row for group in GROUPS for row in group.rows]
LEFT = elsewhere()
NAMED = named()


def test_the_page_is_what_rows_and_tests_say() -> None:
    before, _, _ = PAGE.read_text().partition(BEGIN)
    wanted = f"{before}{BEGIN}\n{page(GROUPS, NAMED, LEFT)}"
    if os.environ.get("PENSTOCK_WRITE_DOCS"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted


def test_every_feature_defect_and_scenario_has_its_row() -> None:
    """A scenario has one here, or is said to be elsewhere."""
    catalogue = ids("feature rows 1 to 69, D1 to D44, S001 to S180")
    left = [one for part in LEFT for one in part.ids]
    assert sorted([row.id for row in ROWS] + left) == sorted(catalogue)


def test_every_id_that_a_test_names_exists() -> None:
    known = {row.id for row in ROWS} | {one for part in LEFT for one in part.ids}
    assert {one: places for one, places in NAMED.items() if one not in known} == {}


def test_a_row_that_is_done_has_a_test_that_names_it() -> None:
    assert [row.id for row in ROWS if row.state == "done" and row.id not in NAMED] == []


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
def test_a_row_that_does_not_say_what_is_missing_is_refused(
    tmp_path: Path, given: str, words: str
) -> None:
    row = f'[[row]]\nid = "D1"\nwhat = "a"\nupstream = "b"\nours = "c"\n{given}\n'
    (tmp_path / "one.toml").write_text(f'title = "t"\nabout = "a"\n{row}')
    with pytest.raises(ValueError, match=f"one.toml: D1: .*{words}"):
        compatibility.load(tmp_path)
