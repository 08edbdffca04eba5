"""The page with all fields."""

from __future__ import annotations

from pathlib import Path

from penstock.api import reference

COMMITTED = Path(__file__).parents[3] / "docs" / "reference.md"


def test_the_committed_page_is_generated_from_the_types():
    assert reference.main(["--check", str(COMMITTED)]) == 0


def test_an_older_page_is_reported(tmp_path: Path):
    page = tmp_path / "reference.md"
    assert reference.main(["--check", str(page)]) == 1
    assert reference.main([str(page)]) == 0
    assert reference.main(["--check", str(page)]) == 0


def test_nested_fields_types_and_defaults_are_shown():
    page = reference.text()
    assert '| `updateStrategy.rollingUpdate.maxUnavailable` | integer or string | `"25%"` |' in page
    assert "| `controllerRef` | object | required |" in page
    assert "| `configFileRefs[].name` | string |" in page
    assert "- externalConfig must be set when external is true" in page
