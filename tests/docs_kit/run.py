"""Runs the command blocks of pages, compares what is printed, or writes it into the page.

`PENSTOCK_WRITE_DOCS=1` puts the real output into the pages in place of the former.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from difflib import unified_diff

from docs_kit.blocks import ROOT, Block, Command
from docs_kit.masks import masked, matches

Execute = Callable[[Block, str], str]
"""Runs a command that a block names; returns both outputs as one text."""
SETTLED_S = 90.0
"""Time that state has to become what a page shows (`retry`)."""
PAUSE_S = 0.5


def run_blocks(blocks: Iterable[Block], execute: Execute) -> None:
    """Run all blocks of one page in order. Raises AssertionError with the first difference."""
    written: list[tuple[Command, list[str]]] = []
    page = ""
    write = bool(os.environ.get("PENSTOCK_WRITE_DOCS"))
    for block in blocks:
        page = block.page
        for command in block.commands:
            printed = _run(block, command, execute, write=write)
            if write and command.shown and block.options.get("output") != "any":
                written.append((command, printed))
                continue
            if command.shown and block.options.get("output") != "any":
                _compare(block, command, printed)
    if written:
        path = ROOT / page
        path.write_text(rewritten(path.read_text(), written))


def rewritten(text: str, outputs: Iterable[tuple[Command, list[str]]]) -> str:
    """Return a page with other outputs below its commands. An output with `...` stays."""
    lines = text.splitlines()
    for command, printed in sorted(outputs, key=lambda one: -one[0].line):
        if "..." in command.output:
            continue
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
