"""All pages of docs/reference, with their index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reference import (
    alerts,
    charts,
    conditions,
    config_keys,
    events,
    flags,
    kinds,
    marks,
    metrics,
    privileges,
    variables,
    versions_run,
)
from reference.page import Page
from reference.source import ROOT

FOLDER = ROOT / "docs/reference"


def pages() -> list[Page]:
    """Each page, the index first."""
    found = [
        *kinds.pages(),
        conditions.page(),
        events.page(),
        metrics.page(),
        alerts.page(),
        config_keys.page(),
        marks.page(),
        flags.page(),
        variables.page(),
        privileges.page(),
        versions_run.page(),
        *charts.pages(),
    ]
    lines = [f"- [{one.subject}]({one.name}.md)" for one in found]
    return [Page("index", "Reference", "", "\n".join(lines)), *found]


def write(folder: Path = FOLDER) -> None:
    """Write the pages, and remove those that are no page any more."""
    folder.mkdir(parents=True, exist_ok=True)
    every = {f"{one.name}.md": one.text for one in pages()}
    for path in folder.glob("*.md"):
        if path.name not in every:
            path.unlink()
    for name, text in every.items():
        (folder / name).write_text(text)


def stale(folder: Path = FOLDER) -> Iterator[str]:
    """Names of pages that differ from the code, are absent, or are no page."""
    every = {f"{one.name}.md": one.text for one in pages()}
    there = {path.name: path.read_text() for path in folder.glob("*.md")}
    yield from sorted(
        name for name in every.keys() | there.keys() if every.get(name) != there.get(name)
    )
