"""Runs the command blocks of pages, compares what is printed, or writes it into the page.

`PENSTOCK_WRITE_DOCS=1` puts the real output into the pages in place of the former.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from difflib import unified_diff

from docs_kit.blocks import ROOT, Block, Command, read_blocks
from docs_kit.masks import masked, matches

Execute = Callable[[Block, str], str]
"""Runs a command that a block names; returns both outputs as one text."""
SETTLED_S = 90.0
"""Time that state has to become what a page shows (`retry`)."""
PAUSE_S = 0.5


def run_blocks(blocks: Sequence[Block], execute: Execute) -> None:
    """Run all blocks of one page in order. Raises AssertionError with the first difference."""
    write = bool(os.environ.get("PENSTOCK_WRITE_DOCS"))
    outputs: list[list[str]] = []
    for block in blocks:
        for command in block.commands:
            printed = _run(block, command, execute, write=write)
            if not command.shown:
                continue
            outputs.append(printed)
            if not write and block.options.get("output") != "any":
                _compare(block, command, printed)
    if write and blocks:
        path = ROOT / blocks[0].page
        path.write_text(rewritten(path.read_text(), blocks[0].site, outputs))


def rewritten(text: str, site: str, outputs: Sequence[list[str]]) -> str:
    """Return a page with other outputs below the commands of a site. One with `...` stays."""
    lines = text.splitlines()
    blocks = [one for one in read_blocks("page", text) if one.site == site]
    commands = [one for block in blocks for one in block.commands if one.shown]
    for command, printed in reversed(list(zip(commands, outputs, strict=True))):
        if "..." not in command.output:
            begin = command.line + command.text.count("\n")
            lines[begin : begin + len(command.output)] = printed
    return "\n".join(lines) + "\n"


def _run(block: Block, command: Command, execute: Execute, *, write: bool) -> list[str]:
    deadline = time.monotonic() + SETTLED_S
    unordered = "unordered" in block.options
    while True:
        printed = execute(block, command.text).rstrip().splitlines()
        if "retry" not in block.options or matches(command.output, printed, unordered=unordered):
            return printed
        if time.monotonic() > deadline or (write and not command.output):
            return printed
        time.sleep(PAUSE_S)


def _compare(block: Block, command: Command, printed: list[str]) -> None:
    if matches(command.output, printed, unordered="unordered" in block.options):
        return
    shown = "\n".join(
        unified_diff(masked(command.output), masked(printed), "page", "printed", lineterm="")
    )
    raise AssertionError(f"{block.page}:{command.line}: $ {command.text}\n{shown}\n\n{printed}")
