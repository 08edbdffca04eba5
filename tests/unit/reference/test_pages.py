"""docs/reference is generated from the code, and is what the code is now."""

from __future__ import annotations

from pathlib import Path

from penstock.api.registry import groups
from reference.pages import FOLDER, pages, stale, write


def test_each_page_has_a_name_of_its_own_and_each_kind_is_on_one() -> None:
    """Two groups of one name overwrote each other's page once."""
    found = pages()
    assert len({one.name for one in found}) == len(found)
    text = "\n".join(one.text for one in found if one.name.startswith("kinds-"))
    names = [info.resource.kind for group in groups() for info in group.kinds]
    assert [name for name in names if f"## {name}\n" not in text] == []


def test_the_pages_are_those_of_the_code() -> None:
    """`make reference` writes them."""
    assert not list(stale())


def test_a_page_that_differs_or_is_no_page_any_more_is_stale(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "metrics.md").write_text("older")
    (tmp_path / "former.md").write_text("")
    assert list(stale(tmp_path)) == ["former.md", "metrics.md"]
    write(tmp_path)
    assert not list(stale(tmp_path))


def page(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text()


def test_nested_fields_types_and_defaults_are_shown() -> None:
    text = page("kinds-slinky.slurm.net")
    assert '| `updateStrategy.rollingUpdate.maxUnavailable` | integer or string | `"25%"` |' in text
    assert "| `controllerRef` | object | required |" in text
    assert "| `configFileRefs[].name` | string |" in text
    assert "- externalConfig must be set when external is true" in text


def test_a_reason_has_its_meaning_next_step_and_messages() -> None:
    text = page("conditions")
    assert "[`ConfigRefused`](../runbooks/ConfigRefused.md): The daemon rejects" in text
    assert "  - `slurmdbd rejects its slurmdbd.conf and keeps the one it has: {words}`" in text


def test_arguments_variables_and_values_have_their_defaults() -> None:
    assert "| `--workers` | `4` | reconciles of one kind side by side |" in page("command-line")
    assert "| `--size` | `node` |" in page("command-line")
    assert "| `PENSTOCK_STATE` | penstock local | `/var/lib/penstock` |" in page("variables")
    assert "| `operator.replicas` | integer | `1` |" in page("chart-slurm-operator")


def test_the_index_names_each_page() -> None:
    found = pages()
    assert found[0].name == "index"
    assert all(f"({one.name}.md)" in found[0].text for one in found[1:])
