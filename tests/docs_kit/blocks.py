"""Command blocks of pages: what a page shows, and where its commands run.

A block begins with ```console and says where its commands run (`on=quickstart`), or why no test
runs them (`not-run="needs a cloud account"`). Options in the info string:

`on=SITE`      a cluster of `SITES`, or `checkout`: the top of the repository, without a cluster.
`in=login`     the commands run on the login node of that cluster, by ssh; else where kubectl is.
`retry`        repeat a command until it prints what the page shows: state that settles.
`unordered`    lines may come in any order.
`output=any`   the output is an excerpt of an earlier run and is not compared.

In a block, `$ ` begins a command and `> ` continues it (also after a backslash, without a mark);
the lines up to the next command are its output. A line `...` stands for any lines.
An HTML comment `<!-- run on=quickstart: COMMAND -->` runs a command that the page does not show,
such as one that restores the state.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITES = {
    "checkout": "tests/unit/docs/test_commands.py",
    "quickstart": "tests/e2e/test_quickstart.py",
    "slurmcluster": "tests/e2e/test_slurmcluster_demo.py",
}
"""Where commands of pages run, and the test that runs them."""
_OPTIONS = {"on", "in", "not-run", "retry", "unordered", "output"}
_FENCE = re.compile(r"^(\s*)```console\b(.*)$")
_HIDDEN = re.compile(r"^<!-- run (on=\S+(?: \w+=\S+)*): (.*?) -->$")


class PageError(ValueError):
    """A block that cannot be understood, with its page and line."""


@dataclass(frozen=True)
class Command:
    """One command, and the lines that the page shows as its output."""

    line: int
    text: str
    output: tuple[str, ...] = ()
    shown: bool = True


@dataclass(frozen=True)
class Block:
    """The commands of one fence and the options of its info string."""

    page: str
    line: int
    options: dict[str, str] = field(default_factory=dict[str, str])
    commands: tuple[Command, ...] = ()

    @property
    def site(self) -> str:
        """Return the name of the site that runs it, or an empty string."""
        return self.options.get("on", "")


def pages() -> tuple[str, ...]:
    """Return the pages of the project: README, CONTRIBUTING and all of docs, sorted."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in found))


def blocks_of(site: str) -> dict[str, tuple[Block, ...]]:
    """Return the blocks that a site runs, by page."""
    found: dict[str, tuple[Block, ...]] = {}
    for page in pages():
        # A page that cannot be read fails the test of pages alone, not each file with a cluster.
        with suppress(PageError):
            blocks = read_blocks(page, (ROOT / page).read_text())
            if mine := tuple(each for each in blocks if each.site == site):
                found[page] = mine
    return found


def read_blocks(page: str, text: str) -> tuple[Block, ...]:
    """Return the blocks of a page in their order. Raises PageError."""
    return tuple(_blocks(page, text.splitlines()))


def _blocks(page: str, lines: list[str]) -> Iterator[Block]:
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if hidden := _HIDDEN.match(line):
            options = _options(page, number, hidden[1])
            yield Block(page, number, options, (Command(number, hidden[2], shown=False),))
        elif fence := _FENCE.match(line):
            begin, indent = number, len(fence[1])
            body: list[str] = []
            while number < len(lines) and lines[number].strip() != "```":
                body.append(lines[number][indent:])
                number += 1
            number += 1
            options = _options(page, begin, fence[2])
            yield Block(page, begin, options, tuple(_commands(page, begin, body)))
        elif line.lstrip().startswith("```"):
            while number < len(lines) and lines[number].strip() != "```":
                number += 1
            number += 1


def _options(page: str, line: int, info: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in shlex.split(info))
    options = {key: value for key, _, value in pairs}
    if unknown := set(options) - _OPTIONS:
        raise PageError(f"{page}:{line}: unknown options {sorted(unknown)}")
    if ("on" in options) == bool(options.get("not-run")):
        raise PageError(
            f"{page}:{line}: name its site (on=SITE) or why none runs it (not-run=REASON)"
        )
    if "on" in options and options["on"] not in SITES:
        raise PageError(f"{page}:{line}: site {options['on']} is not one of {sorted(SITES)}")
    return options


def _commands(page: str, begin: int, body: Iterable[str]) -> Iterator[Command]:
    text, output, at = "", [], 0
    going = False
    for number, line in enumerate(body, begin + 1):
        if line.startswith("$ "):
            if text:
                yield Command(at, text, tuple(output))
            text, output, at, going = line[2:], list[str](), number, True
        elif not text:
            raise PageError(f"{page}:{number}: a block begins with a command: '$ '")
        elif going and text.endswith("\\"):
            text += f"\n{line.removeprefix('> ')}"
        elif going and line.startswith("> "):
            text += f"\n{line[2:]}"
        else:
            going = False
            output.append(line)
    if not text:
        raise PageError(f"{page}:{begin}: a block without a command")
    yield Command(at, text, tuple(output))
