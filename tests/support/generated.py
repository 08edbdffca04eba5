"""The command line of what writes generated files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence


def run(
    arguments: Sequence[str],
    write: Callable[[], object],
    stale: Callable[[], Iterable[str]],
    message: str,
) -> int:
    """Write the files; with `--check` print `message` for each that is stale, and return 1."""
    if list(arguments) != ["--check"]:
        write()
        return 0
    found = list(stale())
    for name in found:
        sys.stderr.write(f"{message.format(name=name)}\n")
    return 1 if found else 0
