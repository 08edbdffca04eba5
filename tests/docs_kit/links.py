"""Links of Markdown pages, and the headings that they reach."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PARTS = ("docs/admin/", "docs/user/", "docs/reference/", "docs/runbooks/")
"""Folders that links may name before they exist: pages come in several steps."""

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"``.*?``|`[^`]*`")
_HEADING = re.compile(r"^#{1,6} +(.*?)\s*$")


def links(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and target of each link that is not in code."""
    for number, line in _prose(text):
        for found in _LINK.finditer(_CODE.sub("", line)):
            yield number, found[1]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site form them."""
    found: dict[str, int] = {}
    every: set[str] = set()
    for _, line in _prose(text):
        if heading := _HEADING.match(line):
            words = re.sub(r"\]\([^)]*\)", "", heading[1]).lower()
            anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            count = found.get(anchor, 0)
            found[anchor] = count + 1
            every.add(f"{anchor}-{count}" if count else anchor)
    return every


def broken_links(page: str, root: Path) -> list[str]:
    """Return a line for each link of a page that reaches no file or no heading."""
    broken: list[str] = []
    text = (root / page).read_text()
    for line, target in links(text):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = ((root / page).parent / path).resolve() if path else root / page
        if not file.exists():
            if not _is_to_come(file, root):
                broken.append(f"{page}:{line}: {target}: no such file")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            broken.append(f"{page}:{line}: {target}: no such heading")
    return broken


def is_complete(root: Path) -> bool:
    """Return whether each part of the documentation exists."""
    return all(any((root / part).glob("*.md")) for part in PARTS)


def _is_to_come(file: Path, root: Path) -> bool:
    found = next((part for part in PARTS if file.is_relative_to(root / part)), None)
    return found is not None and not any((root / found).glob("*.md"))


def _prose(text: str) -> Iterator[tuple[int, str]]:
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        if not inside and not fence:
            yield number, line
        inside ^= fence
