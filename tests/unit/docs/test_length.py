"""Pages by hand stay short enough to be read."""

from __future__ import annotations

from docs_kit.blocks import ROOT, pages

MOST = 30_000
"""Words of all pages together, but those of LATER."""
MOST_OF_A_PAGE = 500
GENERATED = ("docs/compatibility.md", "docs/reference/", "docs/runbooks/")
LATER = frozenset(
    {
        "docs/admin/backup.md",
        "docs/admin/broken-machines.md",
        "docs/admin/check-share.md",
        "docs/admin/jail-upgrade.md",
        "docs/admin/job-isolation.md",
        "docs/admin/munge-key.md",
        "docs/admin/power-saving.md",
        "docs/admin/reboots.md",
        "docs/contribute/own-code.md",
        "docs/platform/dashboards.md",
        "docs/platform/hardening.md",
    }
)
"""Pages of subjects that came after the limit was set."""


def words_by_page() -> dict[str, int]:
    return {
        page: len((ROOT / page).read_text().split())
        for page in pages()
        if not page.startswith(GENERATED)
    }


def test_pages_by_hand_have_at_most_thirty_thousand_words() -> None:
    words = words_by_page()
    assert {"README.md", "CONTRIBUTING.md", "docs/index.md"} <= set(words)
    counted = {page: count for page, count in words.items() if page not in LATER}
    longest = sorted(counted.items(), key=lambda one: -one[1])[:5]
    total = sum(counted.values())
    assert total <= MOST, f"cut {total - MOST} words: {longest}"


def test_a_page_of_a_later_subject_is_short() -> None:
    words = words_by_page()
    assert set(words) >= LATER
    assert not {page: words[page] for page in LATER if words[page] > MOST_OF_A_PAGE}
