"""Which paths name a file of the jail."""

from __future__ import annotations

from typing import Final

OWN_PREFIX: Final = ".penstock-"
"""Begins the names of our own files: the manifest, and files that are being written."""
LONGEST_NAME: Final = 255
"""Bytes of one name. Source: limits.h, NAME_MAX."""
LONGEST_PATH: Final = 4095
"""Bytes of a path. Source: limits.h, PATH_MAX."""


def problem(path: str) -> str:
    """Why a path is rejected; empty for an absolute path of a file without `.` and `..`."""
    if not path.startswith("/"):
        return "it must be absolute, such as /etc/slurm/topology.conf"
    if "\0" in path:
        return "it must have no NUL character"
    names = path[1:].split("/")
    if ".." in names or "." in names:
        return "it must be without . and .."
    if "" in names:
        return "it must name a file, with one / between names"
    encoded = [name.encode(errors="replace") for name in names]
    if max(map(len, encoded)) > LONGEST_NAME or sum(map(len, encoded)) > LONGEST_PATH - len(names):
        return f"a name has at most {LONGEST_NAME} bytes and a path {LONGEST_PATH}"
    if names[-1].startswith(OWN_PREFIX):
        return f"names that begin with {OWN_PREFIX} are kept for this controller"
    return ""


def split(path: str) -> tuple[tuple[str, ...], str]:
    """Folders and name of a path for which `problem` is empty."""
    *folders, name = path[1:].split("/")
    return tuple(folders), name
