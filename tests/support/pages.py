"""Commands and their output in pages for users: tests run the ones and write the others."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def commands(page: str, mark: str) -> str:
    """The shell commands of a page's code block that stands below `<!-- mark -->`."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```sh\n(.*?)```", _text(page), re.DOTALL)
    assert found is not None, f"{page} has no commands {mark!r}"
    return found[1]


def output(page: str, mark: str, text: str) -> None:
    """Put output below `<!-- output: mark -->`, with `PENSTOCK_WRITE_DOCS=1`; else it is there.

    An excerpt stays: lines `...` stand for others, and each of its lines is in the output, apart
    from Penstock's version.
    """
    begin = f"<!-- output: {mark} -->\n```\n"
    before, found, rest = _text(page).partition(begin)
    assert found, f"{page} has no place for output {mark!r}"
    old, _, after = rest.partition("```")
    assert old.strip() or os.environ.get("PENSTOCK_WRITE_DOCS")
    if "..." in old.splitlines():
        absent = _lines(old) - _lines(text) - {"..."}
        assert not absent, f"{page} shows lines that were not printed: {absent}"
    elif os.environ.get("PENSTOCK_WRITE_DOCS"):
        (ROOT / page).write_text(f"{before}{begin}{text.strip()}\n```{after}")


def _lines(text: str) -> set[str]:
    return {re.sub(r"\d+\.\d+\.\d+", "VERSION", line) for line in text.splitlines()}


def _text(page: str) -> str:
    return (ROOT / page).read_text()
