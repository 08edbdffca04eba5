"""Sphinx's settings for the site of this repository's Markdown pages.

The source folder is the top of the repository, so that links between pages and to files work on the
site as they do in the repository. docs/index.md lists the pages: the navigation is read from it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from penstock import __version__

ROOT = Path(__file__).parents[2]
INDEX = "docs/index"

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
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}

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


def setup(app: Any) -> None:
    """Register the step that adds the navigation."""
    app.connect("source-read", _add_navigation)
