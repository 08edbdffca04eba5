"""Files of a root that users may change: no symbolic link is followed, and no read waits.

Root of the jail may put a link or a pipe at any path. So each name is opened below a descriptor of
its folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Generator
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
LARGEST = 64 << 20
"""Bytes of a file that is read."""
Stamp = tuple[int, int, int]
"""Inode, time and size: equal ones are of the same content."""


@contextlib.contextmanager
def opened(root: Path, path: str = "", *, make: bool = False) -> Generator[int]:
    """A folder below a root as a descriptor. Raises OSError."""
    fd = os.open(root, FOLDER)
    try:
        for name in filter(None, path.split("/")):
            above = fd
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=above)
            fd = os.open(name, FOLDER, dir_fd=above)
            os.close(above)
        yield fd
    finally:
        os.close(fd)


def stamp(folder: int, name: str) -> Stamp | None:
    """The stamp of a file or folder; None while it is absent. Raises OSError."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read(folder: int, name: str) -> str:
    """Text of a file; empty when it is absent. Raises OSError."""
    try:
        fd = os.open(name, FILE, dir_fd=folder)
    except FileNotFoundError:
        return ""
    with os.fdopen(fd, encoding="utf-8", errors="surrogateescape") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise OSError(f"{name} is no file of at most {LARGEST >> 20} MiB")
        return file.read()


def replace(folder: int, name: str, text: str) -> None:
    """Replace a file by rename; mode and owner stay. A new one is root's, 0600. Raises OSError."""
    new = f"{name}.penstock"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(new, flags, 0o600, dir_fd=folder)
    with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
        with contextlib.suppress(FileNotFoundError):
            old = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(old.st_mode):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
