"""Sections of Slurm's configuration files as text: the one place that writes lines.

A line with a break, or with a backslash at its end, would reach into other lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from penstock.slurm.conf.document import ConfError

EXTRA: Final = "EXTRA CONFIG"
"""Title of the user's own lines, which stand as they are."""
_BREAKS: Final = re.compile(r"[\x00\n\r]")
_WORD: Final = re.compile(r"[^\s\"'#\\\x00-\x1f\x7f]+")


def is_one_line(text: str) -> bool:
    """Whether a text neither ends its line nor continues on the next one.

    An even number of backslashes at the end is that of escaped ones, and blanks after them do not
    count. Source: Slurm's parser of configuration files.
    """
    line = text.rstrip()
    escapes = len(line) - len(line.rstrip("\\"))
    return not _BREAKS.search(text) and escapes % 2 == 0


def setting(key: str, value: str | int) -> str:
    """`Key=Value` of a value that is one word. Raises ConfError for any other value.

    Blanks count too: in Slurm's files another `Key=Value` may follow one.
    """
    text = str(value)
    if not _WORD.fullmatch(text):
        raise ConfError(f"{key}: {text[:60]!r} is not one word: blanks, quotes, # and \\ are not")
    return f"{key}={text}"


def title(section: str) -> str:
    """The comment over a section."""
    return f"#\n### {section} ###\n"


def text_of(sections: Iterable[tuple[str, list[str]]]) -> str:
    """The file of these sections, title and lines each; empty ones are left out.

    Raises ConfError for a line that is more than one line.
    """
    return "".join(
        title(name) + ("".join(f"{line}\n" for line in lines) if name == EXTRA else lines_of(lines))
        for name, lines in sections
        if lines
    )


def lines_of(lines: Iterable[str]) -> str:
    """Lines of ours. Raises ConfError for one that is more than one line."""
    return "".join(map(_written, lines))


def _written(line: str) -> str:
    if not is_one_line(line):
        raise ConfError(f"{line[:60]!r} is more than one line")
    return f"{line}\n"
