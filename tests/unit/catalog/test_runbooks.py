"""Each reason that needs a person has a runbook of one form, which `penstock explain` prints."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from dashboards.alerts import ALERTS, STALLED
from penstock.catalog import runbook
from penstock.catalog.reasons import ALL
from penstock.catalog.reasons.configuration import ConfigReason
from penstock.catalog.reasons.pods import PodReason
from penstock.cli.main import app
from reference.source import ROOT
from wording.check import find_in_page

FOLDER = ROOT / "docs/runbooks"
HEADINGS = [
    "What it means",
    "How to look",
    "How to cure",
    "How to see that it is cured",
]
WORDS = 250
PAGES = sorted(path.stem for path in FOLDER.glob("*.md"))


def test_there_is_a_page_for_each_reason_that_needs_a_person_and_each_alert() -> None:
    alerts = {one.page for one in ALERTS if one is not STALLED}
    assert set(PAGES) == {one.value for one in ALL if one.needs_person} | alerts


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_four_headings_and_few_words(name: str) -> None:
    text = (FOLDER / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    parts = re.split(r"^## .*$", text, flags=re.MULTILINE)[1:]
    assert all(part.strip() for part in parts)
    assert len(text.split()) < WORDS


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_in_plain_english_and_its_links_lead_somewhere(name: str) -> None:
    title, _, text = (FOLDER / f"{name}.md").read_text().partition("\n")
    assert title == f"# {name}"
    assert not [str(one) for one in find_in_page(f"docs/runbooks/{name}.md", text)]
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert (FOLDER / target).is_file(), target


def explained(name: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["explain", name])
    return done.exit_code, done.output


def test_explain_prints_the_page() -> None:
    page = (FOLDER / "ConfigRefused.md").read_text()
    for name in ("ConfigRefused", "configrefused", f"{runbook.BASE}ConfigRefused"):
        assert explained(name) == (0, page)


def test_explain_prints_the_page_of_an_alert() -> None:
    page = (FOLDER / "SlurmNodesUnavailable.md").read_text()
    assert explained("https://penstock.dev/r/SlurmNodesUnavailable") == (0, page)


def test_explain_knows_reasons_without_a_page() -> None:
    status, text = explained("PodsReady")
    assert status == 0
    assert PodReason.READY.meaning in text


def test_explain_names_similar_reasons_for_an_unknown_one() -> None:
    status, text = explained("ConfigRefusd")
    assert status == 1
    assert "unknown reason ConfigRefusd" in text
    assert "ConfigRefused" in text
    assert explained("../ConfigRefused/Zzz")[0] == 1


def test_a_message_ends_with_its_address_once_within_its_limit() -> None:
    address = "https://penstock.dev/r/ConfigRefused"
    for words in ("slurmctld rejects it: x", "slurmctld rejects it: x."):
        once = runbook.with_address(words, ConfigReason.REFUSED, 1000)
        assert once == f"slurmctld rejects it: x. See {address}"
        assert runbook.with_address(once, ConfigReason.REFUSED, 1000) == once
        assert runbook.without_address(once) == "slurmctld rejects it: x"
    quoted = f"Accounting a: {once}"
    assert runbook.with_address(quoted, PodReason.NOT_READY, 1000) == (
        "Accounting a: slurmctld rejects it: x"
    )
    long = runbook.with_address("y" * 1000, ConfigReason.REFUSED, 100)
    assert len(long) == 100
    assert long.endswith(address)
    assert runbook.with_address("", ConfigReason.REFUSED, 100) == f"See {address}"
