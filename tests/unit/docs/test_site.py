"""The site is built from all pages without a warning, and each page is in its navigation."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest

from docs_kit.blocks import ROOT, pages
from docs_kit.links import is_complete
from penstock.catalog import runbook
from penstock.catalog.reasons import ALL

complete = pytest.mark.skipif(not is_complete(ROOT), reason="a part of the pages is to come")
CONF = ROOT / "docs/site/conf.py"


@pytest.fixture(scope="module")
def conf() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_conf", CONF)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_navigation_is_read_from_the_index(conf: ModuleType) -> None:
    index = "# Q\n- [x?](x.md)\n## Part\n- [y?](p/y.md)\n- [z?](../z.md)\n[text](t.md)\n"
    found = conf.navigation(index)
    assert found.split("```")[1].splitlines()[1:] == [":hidden:", ":caption: Begin here", "x"]
    assert found.split("```")[3].splitlines()[3:] == ["p/y", "../z"]


def test_a_short_address_redirects_without_javascript_and_has_a_plain_link(
    conf: ModuleType,
) -> None:
    text = conf.short_pages(["KeyDiffers"])["r/KeyDiffers/index.html"]
    target = "../../docs/runbooks/KeyDiffers.html"
    assert f'<meta http-equiv="refresh" content="0; url={target}">' in text
    assert f'<a href="{target}">KeyDiffers</a>' in text


def test_a_missing_address_leads_to_the_reasons_from_any_folder(conf: ModuleType) -> None:
    links = re.findall(r'href="([^"]+)"', conf.short_pages([])["404.html"])
    assert links == ["/docs/reference/conditions.html", "/docs/index.html"]


@complete
def test_every_page_is_in_the_index_or_in_the_list_of_its_folder() -> None:
    index = (ROOT / "docs/index.md").read_text()
    for page in pages():
        name = page.removeprefix("docs/")
        listed = f"({name})" in index or f"(../{name})" in index
        generated = name.startswith(("reference/", "runbooks/"))
        assert listed or generated or name == "index.md", f"{page} is not in docs/index.md"


@complete
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Links, anchors and code blocks of all pages; no network is there to use."""
    command = ["-m", "sphinx", "-q", "-c", "docs/site", "-d", str(tmp_path / "tree"), "-b", "html"]
    run = subprocess.run(
        [sys.executable, *command, ".", str(tmp_path / "html")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "html/searchindex.js").stat().st_size > 100_000
    assert "data-theme" in (tmp_path / "html/docs/index.html").read_text()
    assert [
        name for name in _short_addresses() if not _leads_to_page(tmp_path / "html", name)
    ] == []


def _short_addresses() -> list[str]:
    """The addresses of the site that the operator's messages and its top folder have."""
    found = (runbook.address(one) for one in ALL)
    return ["/", "/r/", *(f"{urlsplit(one).path}/" for one in found if one), "/404.html"]


def _leads_to_page(site: Path, address: str) -> bool:
    """Whether a web server of static files finds a page there whose links all reach a file."""
    page = site / address[1:]
    page = page / "index.html" if address.endswith("/") else page
    targets = re.findall(r'(?:url=|href=")([^"]+)"', page.read_text()) if page.is_file() else []
    files = [site / one[1:] if one[0] == "/" else page.parent / one for one in targets]
    return bool(files) and all(one.is_file() for one in files)
