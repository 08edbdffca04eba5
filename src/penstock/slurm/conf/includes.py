"""Include lines of slurm.conf, followed within one set of files.

A set that has slurm.conf in several files counts as one document: keys and partitions are found in
whichever file they are. An Include of a file that is not in the set stays a line.
Source: slurm.conf(5), INCLUDE MODIFIERS: a name without a folder is beside slurm.conf.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Final

from penstock.base.recent_results import RecentResults
from penstock.slurm.conf.document import Document

SLURM_CONF: Final = "slurm.conf"
FOLDER: Final = "/etc/slurm"
"""Where the files of a set are, under their names."""
MOST_INCLUDES: Final = 64
"""Include lines that are followed in one document. A file may include another one any number of
times, so without a limit a small set would become a text of any length."""


def included(files: Mapping[str, str], file: str = SLURM_CONF) -> tuple[str, ...]:
    """Names of the files of the set that this one includes, also by others; sorted."""
    found: set[str] = set()
    left = [file]
    while left:
        for name in _inner(files, left.pop()):
            if name not in found:
                found.add(name)
                left.append(name)
    return tuple(sorted(found - {file}))


def resolved(files: Mapping[str, str], file: str = SLURM_CONF) -> str:
    """The text of a file with the text of included files in place of their Include lines.

    Without an Include line of a file of the set it is the file's own text; an absent file is empty.
    A file that includes itself is not followed again.
    """
    return _recent((tuple(files.items()), file))


def _joined(argument: tuple[tuple[tuple[str, str], ...], str]) -> str:
    files, file = argument
    return "".join(_pieces(dict(files), file, (file,), [MOST_INCLUDES]))


_recent: Final = RecentResults(_joined, 16)
"""A reconcile asks for the text of the same few sets many times."""


def name_in_set(include: str) -> str:
    """The name that an included file has in a set; empty for a path elsewhere."""
    path = posixpath.normpath(posixpath.join(FOLDER, include))
    folder, name = posixpath.split(path)
    return name if folder == FOLDER else ""


def _inner(files: Mapping[str, str], file: str) -> Iterator[str]:
    for include in Document.parse(files.get(file, "")).includes():
        if (name := name_in_set(include)) in files:
            yield name


def _pieces(
    files: Mapping[str, str], file: str, open_files: tuple[str, ...], left: list[int]
) -> Iterator[str]:
    """Texts of lines and of included files; `left` counts the Include lines still followed."""
    text = files.get(file, "")
    document = Document.parse(text)
    if not document.includes():
        yield text
        return
    for line in document.lines:
        name = name_in_set(line.include) if line.include is not None else ""
        if name not in files or name in open_files or not left[0]:
            yield line.text
            continue
        left[0] -= 1
        yield _ended("".join(_pieces(files, name, (*open_files, name), left)))


def _ended(text: str) -> str:
    """A file's text that more may follow: its last line ends, and does not continue."""
    body = text.removesuffix("\n")
    escapes = len(body) - len(body.rstrip("\\"))
    return f"{body[:-1] if escapes % 2 else body}\n" if text else ""
