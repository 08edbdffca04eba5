"""Folders of a jail, opened one name at a time and without following symbolic links.

The jail belongs to users. Root in a job may replace any folder by a symbolic link between a check
and its use, so each name is opened relative to the folder before it, and files are used relative
to that descriptor. A folder that is moved meanwhile is still a folder of the jail.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from types import TracebackType
from typing import Final

from penstock.controllers.jailed_config.jail_errors import JailError, failed, unexpected

MOST: Final = 256
"""Folders that are open at the same time; the usual limit is 1024 descriptors."""
_UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})
"""Answers of file systems that cannot sync a folder. Source: fsync(2)."""
_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class JailFolders:
    """Folders of one jail, by the names that lead to them. Use it in a `with` statement.

    `root` is a path of this container and trusted. Every method raises JailError.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._open: dict[tuple[str, ...], int] = {}

    def __enter__(self) -> JailFolders:
        try:
            self._open[()] = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise failed(self._root, error) from error
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        for descriptor in self._open.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._open.clear()

    def find(self, names: tuple[str, ...]) -> int | None:
        """Descriptor of a folder; None while it or one above is absent."""
        return self._folder(names, create=False)

    def make(self, names: tuple[str, ...]) -> int:
        """Descriptor of a folder, created with mode 0755 if it is absent."""
        found = self._folder(names, create=True)
        if found is None:
            raise JailError(_path(names), "it was removed while it was created")
        return found

    def sync(self) -> None:
        """Have renames and new entries of all open folders reach the volume."""
        for names, descriptor in self._open.items():
            try:
                os.fsync(descriptor)
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise failed(_path(names), error) from error

    def _folder(self, names: tuple[str, ...], *, create: bool) -> int | None:
        if names in self._open:
            return self._open[names]
        above = self._folder(names[:-1], create=create)
        if above is None:
            return None
        if len(self._open) > MOST:
            raise JailError(_path(names), f"files of one object may use at most {MOST} folders")
        try:
            found = _entered(names, above)
            if found is None and create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(names[-1], 0o755, dir_fd=above)
                found = _entered(names, above)
        except OSError as error:
            raise failed(_path(names), error) from error
        if found is not None:
            self._open[names] = found
        return found


def _entered(names: tuple[str, ...], above: int) -> int | None:
    try:
        return os.open(names[-1], _FLAGS, dir_fd=above)
    except FileNotFoundError:
        return None
    except OSError:
        # Linux reports ENOTDIR for a symbolic link as well.
        mode = os.stat(names[-1], dir_fd=above, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            raise
        raise unexpected(_path(names), mode, "a folder") from None


def _path(names: tuple[str, ...]) -> str:
    return "/" + "/".join(names)
