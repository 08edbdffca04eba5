"""Every command block of a page is marked, and those of the checkout print what pages show."""

from __future__ import annotations

import pytest

from docs_kit.blocks import ROOT, SITES, blocks_of, pages, read_blocks
from docs_kit.run import run_blocks
from docs_kit.shells import at_checkout


def test_each_command_block_names_its_site_or_a_reason_for_none() -> None:
    for page in pages():
        read_blocks(page, (ROOT / page).read_text())


@pytest.mark.parametrize("site", SITES)
def test_the_file_of_each_site_runs_its_blocks(site: str) -> None:
    assert f'blocks_of("{site}")' in (ROOT / SITES[site]).read_text()


CHECKOUT = blocks_of("checkout")


@pytest.mark.parametrize("page", CHECKOUT)
def test_commands_at_the_checkout_print_what_the_page_shows(page: str) -> None:
    run_blocks(CHECKOUT[page], at_checkout())
