"""Folders of several roots side by side: their entries, and whether two are the same.

No symbolic link is followed: root of the jail may put one at any path.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Generator
from dataclasses import dataclass

from jail_files import FILE, FOLDER, read

BLOCK = 1 << 20
ATTRIBUTES = ("security.capability", "system.posix_acl_access")
"""Those that populate-jail copies."""


@dataclass(frozen=True)
class Entry:
    """What one name of a folder is. `target` is that of a symbolic link."""

    about: os.stat_result
    target: str = ""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.about.st_mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.about.st_mode)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.about.st_mode)

    @property
    def owner(self) -> tuple[int, int, int]:
        """Mode and owner; a symbolic link has no mode of its own."""
        mode = 0 if self.is_link else stat.S_IMODE(self.about.st_mode)
        return mode, self.about.st_uid, self.about.st_gid

    def is_like(self, other: Entry) -> bool:
        """Whether type, mode, owner, size and target are equal: all but the content of a file."""
        return (
            stat.S_IFMT(self.about.st_mode) == stat.S_IFMT(other.about.st_mode)
            and self.owner == other.owner
            and self.target == other.target
            and (not self.is_file or self.about.st_size == other.about.st_size)
            and self.about.st_rdev == other.about.st_rdev
        )


def is_folder(found: Entry | None) -> bool:
    """Whether there is a folder."""
    return found is not None and found.is_folder


def entry(folder: int, name: str) -> Entry | None:
    """The entry of a folder; None while it is absent. Raises OSError."""
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        target = os.readlink(name, dir_fd=folder) if stat.S_ISLNK(about.st_mode) else ""
    except FileNotFoundError:
        return None
    return Entry(about, target)


class Folder:
    """One folder of one root; without a descriptor it is an absent one, which has no entries."""

    def __init__(self, fd: int | None = None) -> None:
        self.fd = fd

    @classmethod
    @contextlib.contextmanager
    def of(cls, path: str) -> Generator[Folder]:
        """The folder at a path. Raises OSError."""
        fd = os.open(path, FOLDER)
        try:
            yield cls(fd)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def below(self, name: str, *, is_there: bool) -> Generator[Folder]:
        """One of its folders. Raises OSError."""
        if self.fd is None or not is_there:
            yield Folder()
            return
        fd = os.open(name, FOLDER, dir_fd=self.fd)
        try:
            yield Folder(fd)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def at(self, path: str) -> Generator[Folder]:
        """The folder at a path below; an absent one if there is something else. Raises OSError."""
        with contextlib.ExitStack() as opened:
            found = self
            for name in filter(None, path.split("/")):
                about = found.entry(name)
                is_there = about is not None and about.is_folder
                found = opened.enter_context(found.below(name, is_there=is_there))
            yield found

    def text(self, path: str) -> str:
        """The text of a file below; empty without one. Raises OSError."""
        folder, _, name = path.rpartition("/")
        with self.at(folder) as found:
            return "" if found.fd is None else read(found.fd, name)

    def names(self) -> set[str]:
        """Names of its entries, but for other file systems that are mounted there."""
        if self.fd is None:
            return set()
        own = os.fstat(self.fd).st_dev
        with os.scandir(self.fd) as found:
            return {
                one.name
                for one in found
                if not one.is_dir(follow_symlinks=False)
                or one.stat(follow_symlinks=False).st_dev == own
            }

    def entry(self, name: str) -> Entry | None:
        """One of its entries; None while it is absent."""
        return None if self.fd is None else entry(self.fd, name)

    def blocks(self, name: str) -> Generator[bytes]:
        """The content of a file. Raises OSError."""
        with os.fdopen(os.open(name, FILE, dir_fd=self.fd), "rb", buffering=0) as file:
            while block := file.read(BLOCK):
                yield block

    def attributes(self, name: str) -> dict[str, bytes]:
        """Extended attributes of a file that belong to its content."""
        found: dict[str, bytes] = {}
        fd = os.open(name, FILE, dir_fd=self.fd)
        try:
            for one in ATTRIBUTES:
                with contextlib.suppress(OSError):
                    found[one] = os.getxattr(fd, one)
        finally:
            os.close(fd)
        return found


def same(name: str, one: Folder, other: Folder, other_name: str = "") -> bool:
    """Whether a name is the same in two folders; of folders, whether their owners are."""
    other_name = other_name or name
    first, second = one.entry(name), other.entry(other_name)
    if first is None or second is None:
        return first is second
    if not first.is_like(second):
        return False
    if not first.is_file:
        return True
    if (first.about.st_dev, first.about.st_ino) == (second.about.st_dev, second.about.st_ino):
        return True
    if one.attributes(name) != other.attributes(other_name):
        return False
    blocks = zip(one.blocks(name), other.blocks(other_name), strict=False)
    return all(left == right for left, right in blocks)
