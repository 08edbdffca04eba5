"""Why a file of the jail was not written, in words for a condition."""

from __future__ import annotations

import errno
import os
import stat

WORDS = {
    errno.EDQUOT: "the quota of the jail is used up; free space in it or enlarge its volume",
    errno.ENOSPC: "the jail is full; free space in it or enlarge its volume",
    errno.EROFS: "the jail is mounted read-only; mount its volume for writing",
    errno.EACCES: "permission denied; let the user of sconfigcontroller write to the folder",
    errno.EPERM: "permission denied; let the user of sconfigcontroller write to the folder",
}
_TYPES = (
    (stat.S_ISLNK, "a symbolic link, which is never followed"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISREG, "a file"),
)


class JailError(Exception):
    """A path of the jail cannot be used. `str()` begins with the path."""

    def __init__(self, path: str, words: str) -> None:
        super().__init__(f"{path}: {words}")
        self.path = path


def failed(path: str, error: OSError) -> JailError:
    """A system call about a path failed."""
    words = WORDS.get(error.errno or 0) or os.strerror(error.errno or 0)
    return JailError(path, words)


def unexpected(path: str, mode: int, wanted: str) -> JailError:
    """Something else than the `wanted` kind of file has this path."""
    kind = next((words for is_kind, words in _TYPES if is_kind(mode)), "a device")
    return JailError(path, f"it is {kind}; remove it, so that {wanted} can take its place")
