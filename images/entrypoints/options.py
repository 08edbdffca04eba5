"""Command line options of a daemon, from its environment variable and the container's arguments."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

# Characters that make an argument shell text rather than one word.
SHELL = frozenset("'\"$`\\")


def words(variable: str, arguments: Sequence[str]) -> list[str]:
    """Return the words of `$variable` followed by the container's arguments.

    Both are shell text, since pods hand quoted words and variables of the container to be
    expanded: `--conf 'Features=gpu Topology='"$SLINKY_TOPOLOGY"`. An argument with neither is
    one word as it is (`A=1 B=2`), except that options may share one (`-N w-0`).
    Raises ValueError for text that the shell cannot read.
    """
    literal = (
        f"'{word}'"
        if SHELL.isdisjoint(word) and not (word.startswith("-") and " " in word)
        else word
        for word in arguments
    )
    text = " ".join([os.environ.get(variable, ""), *literal]).strip()
    script = 'eval "set -- $1" && for word; do printf "%s\\0" "$word"; done'
    result = subprocess.run(
        ["/bin/bash", "-fc", script, variable, text], capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise ValueError(f"{variable} and arguments are no shell words: {text}: {result.stderr}")
    return result.stdout.split("\0")[:-1]
