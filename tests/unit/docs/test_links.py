"""Links in pages reach a file, and their anchors a heading."""

from __future__ import annotations

import pytest

from docs_kit.blocks import ROOT, pages
from docs_kit.links import anchors, broken_links, links


def test_anchors_are_those_of_headings() -> None:
    page = "# A page: `x`?\n## Two *words*\n```sh\n# no heading\n```\n## Two words\n(here)=\n"
    assert anchors(page) == {"a-page-x", "two-words", "two-words-1"}


def test_links_in_code_are_none() -> None:
    page = "[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n![g](h.svg)\n"
    assert list(links(page)) == [(1, "b.md"), (5, "h.svg")]


@pytest.mark.parametrize("page", [*pages(), "CHANGELOG.md", "SCOPE.md"])
def test_each_link_reaches_its_file_and_heading(page: str) -> None:
    assert broken_links(page, ROOT) == []
