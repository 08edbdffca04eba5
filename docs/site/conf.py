"""Sphinx's settings for the site of this repository's Markdown pages.

The source folder is the top of the repository, so that links between pages and to files work on the
site as they do in the repository. docs/index.md lists the pages: the navigation is read from it.
Condition messages have short addresses of runbooks (penstock.catalog.runbook): the build adds a
page for each that redirects to the runbook. So any host of static files serves them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock import __version__
from penstock.catalog import runbook

ROOT = Path(__file__).parents[2]
INDEX = "docs/index"
REASONS = "docs/reference/conditions.html"

project = "Penstock"
author = "The Penstock authors"
copyright = "The Penstock authors, Apache-2.0"  # noqa: A001 - the name of Sphinx's setting
version = release = __version__

root_doc = INDEX
include_patterns = ["docs/**", "*.md", "images/**/README.md"]
exclude_patterns = ["docs/site/**"]
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]
highlight_language = "none"

html_theme = "furo"
html_title = f"Penstock {__version__}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_copy_source = False
html_show_sphinx = False
html_theme_options: dict[str, Any] = {"navigation_with_keys": True, "top_of_page_buttons": []}

_ROW = re.compile(r"^- \[.*\]\(([^)#\s]+)\.md\)$")


def navigation(index: str) -> str:
    """Return the table of contents that the headings and lists of the index page contain."""
    lines: list[str] = []
    caption = "Begin here"
    targets: dict[str, list[str]] = {}
    for line in index.splitlines():
        if line.startswith("## "):
            caption = line[3:]
        elif row := _ROW.search(line):
            targets.setdefault(caption, []).append(row[1])
    for name, pages in targets.items():
        lines += ["", "```{toctree}", ":hidden:", f":caption: {name}", *pages, "```"]
    return "\n".join(lines) + "\n"


def _add_navigation(app: Any, name: str, source: list[str]) -> None:
    if name == INDEX:
        source[0] += navigation(source[0])
    elif name.startswith("images/"):
        source[0] = f"---\norphan: true\n---\n{source[0]}"
    elif name == "docs/reference/conditions":
        # It links each reason to its runbook.
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n../runbooks/*\n```\n"
    elif name.endswith("/index"):
        # A folder of generated pages lists them itself.
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n*\n```\n"


def short_pages(names: Iterable[str]) -> dict[str, str]:
    """Return the HTML of short addresses by their file: of each runbook, of the site and of 404.

    A redirect has a relative address, so it works on any host and below any folder. A host serves
    404.html at the address that is missing, so its link begins at the top of the site.
    """
    folder = urlsplit(runbook.BASE).path.strip("/")
    pages = {
        "index.html": _redirect(f"{INDEX}.html", "Penstock"),
        f"{folder}/index.html": _redirect(f"../{REASONS}", "Reasons of conditions"),
        "404.html": _page(
            "Page not found",
            f'<p>No page has this address. Find it in the <a href="/{REASONS}">list of reasons</a>'
            f' or the <a href="/{INDEX}.html">list of pages</a>.</p>',
        ),
    }
    for name in names:
        target = f"../../docs/runbooks/{name}.html"
        pages[f"{folder}/{name}/index.html"] = _redirect(target, name)
    return pages


def _redirect(target: str, title: str) -> str:
    refresh = f'<meta http-equiv="refresh" content="0; url={target}">'
    return _page(title, f'<p>Go to <a href="{target}">{escape(title)}</a>.</p>', refresh)


def _page(title: str, body: str, head: str = "") -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"{head}<title>{escape(title)}</title>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _write_short_pages(app: Any, failure: Exception | None) -> None:
    if failure or app.builder.name != "html":
        return
    names = sorted(path.stem for path in (ROOT / "docs/runbooks").glob("*.md"))
    for path, text in short_pages(names).items():
        file = Path(app.outdir) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    """Register the steps that add the navigation and the short addresses."""
    app.connect("source-read", _add_navigation)
    app.connect("build-finished", _write_short_pages)
