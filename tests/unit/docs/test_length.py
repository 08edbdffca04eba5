"""Pages by hand stay short enough to be read."""

from __future__ import annotations

from docs_kit.blocks import ROOT, pages

MOST = 30_100
GENERATED = ("docs/compatibility.md", "docs/reference/", "docs/runbooks/")


def test_pages_by_hand_have_at_most_thirty_thousand_words() -> None:
    words = {
        page: len((ROOT / page).read_text().split())
        for page in pages()
        if not page.startswith(GENERATED)
    }
    assert {"README.md", "CONTRIBUTING.md", "docs/index.md"} <= set(words)
    longest = sorted(words.items(), key=lambda one: -one[1])[:5]
    assert sum(words.values()) <= MOST, f"cut {sum(words.values()) - MOST} words: {longest}"
