"""Writes files into a jail so that each is old or new and whole at every moment.

All files are staged first, each under a name of ours in its own folder and synced, and only then
renamed into place. So a full volume changes nothing. A staged file that a killed process left is
replaced by the next one for the same path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Generator, Iterable, Sequence
from typing import Final

from penstock.controllers.jailed_config.jail_errors import JailError, failed, unexpected
from penstock.controllers.jailed_config.jail_folders import JailFolders
from penstock.decide.jail import paths
from penstock.model.jail_file import JailFile

LARGEST: Final = 2**20
"""Bytes of one file, which is what a ConfigMap has at most."""
_FIRST: Final = "first"
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class JailFiles:
    """The files of one jail, mounted at `root`. Methods block, and raise JailError.

    Paths are absolute within the jail. A symbolic link is rejected wherever it is in a path.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def read(self, path: str, largest: int = LARGEST) -> bytes | None:
        """Content of a regular file; None while it is absent or has more than `largest` bytes."""
        with JailFolders(self._root) as folders:
            names, name = paths.split(path)
            folder = folders.find(names)
            try:
                found = _opened(path, folder, name) if folder is not None else None
            except PermissionError as error:
                raise failed(path, error) from error
            if found is None:
                return None
            with _closing(found):
                content = _content(path, found, largest)
                return content if len(content) <= largest else None

    def differing(self, files: Iterable[JailFile]) -> tuple[JailFile, ...]:
        """The files that are absent, or have other content or another mode."""
        with JailFolders(self._root) as folders:
            return tuple(one for one in files if not _is_equal(folders, one))

    def existing(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """The paths that exist."""
        with JailFolders(self._root) as folders:
            return tuple(one for one in wanted if _mode_at(folders, one) is not None)

    def write(
        self,
        files: Sequence[JailFile],
        *,
        first: JailFile | None = None,
        removed: Sequence[str] = (),
        last: JailFile | None = None,
    ) -> None:
        """Replace `first`, then files in this order, remove paths, and replace `last`.

        Nothing is changed when one of them cannot be staged. A path to remove that is a folder now
        belongs to somebody else and stays. `first` and `last` may be the same path.
        """
        with JailFolders(self._root) as folders:
            ahead = [_Staged(first, _FIRST)] if first is not None else []
            middle = [_Staged(one) for one in files]
            behind = [_Staged(last)] if last is not None else []
            left = [*ahead, *middle, *behind]
            try:
                for one in left:
                    one.stage(folders)
                for one in ahead:
                    one.put(folders)
                if ahead:
                    folders.sync()
                for one in middle:
                    one.put(folders)
                for path in removed:
                    _remove(folders, path)
                folders.sync()
                for one in behind:
                    one.put(folders)
                if behind:
                    folders.sync()
            except (JailError, OSError):
                for one in left:
                    one.drop(folders)
                raise


def _is_equal(folders: JailFolders, file: JailFile) -> bool:
    names, name = paths.split(file.path)
    folder = folders.find(names)
    try:
        found = _opened(file.path, folder, name) if folder is not None else None
    except PermissionError:
        return False  # somebody else's, which a rename replaces
    if found is None:
        return False
    with _closing(found):
        state = os.fstat(found)
        if state.st_size != len(file.content) or stat.S_IMODE(state.st_mode) != file.mode:
            return False
        return _content(file.path, found, len(file.content)) == file.content


def _opened(path: str, folder: int, name: str) -> int | None:
    """Descriptor of a regular file. Raises PermissionError for one that may not be read."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not stat.S_ISREG(mode):
            raise unexpected(path, mode, "the file")
        found = os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        return None
    except PermissionError:
        raise
    except OSError as error:
        raise failed(path, error) from error
    # It may have been replaced since it was checked. A pipe opened without blocking does no harm.
    mode = os.fstat(found).st_mode
    if not stat.S_ISREG(mode):
        os.close(found)
        raise unexpected(path, mode, "the file")
    return found


def _content(path: str, descriptor: int, most: int) -> bytes:
    """All of a file, or one byte more than `most` of it."""
    parts: list[bytes] = []
    left = most + 1
    try:
        while left and (part := os.read(descriptor, left)):
            parts.append(part)
            left -= len(part)
    except OSError as error:
        raise failed(path, error) from error
    return b"".join(parts)


def _mode_at(folders: JailFolders, path: str) -> int | None:
    names, name = paths.split(path)
    folder = folders.find(names)
    if folder is None:
        return None
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failed(path, error) from error


class _Staged:
    """A file on its way: first beside its place under a name of ours."""

    def __init__(self, file: JailFile, variant: str = "") -> None:
        self._file = file
        self._names, self._name = paths.split(file.path)
        self._staged = staged_name(self._name, variant)

    def stage(self, folders: JailFolders) -> None:
        """Write and sync it, without touching its place."""
        file = self._file
        if len(file.content) > LARGEST:
            raise JailError(file.path, f"its content has more than {LARGEST} bytes")
        if not file.mode & stat.S_IRUSR:
            raise JailError(file.path, f"mode {file.mode:04o} must let the owner read it (0400)")
        folder = folders.make(self._names)
        mode = _mode_at(folders, file.path)
        if mode is not None and not stat.S_ISREG(mode):
            raise unexpected(file.path, mode, "the file")
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._staged, dir_fd=folder)
            descriptor = os.open(self._staged, _WRITE, 0o600, dir_fd=folder)
            with _closing(descriptor):
                left = memoryview(file.content)
                while left:
                    left = left[os.write(descriptor, left) :]
                os.fchmod(descriptor, file.mode)
                os.fsync(descriptor)
        except OSError as error:
            raise failed(file.path, error) from error

    def put(self, folders: JailFolders) -> None:
        """Rename it into its place."""
        folder = folders.make(self._names)
        try:
            os.rename(self._staged, self._name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            raise failed(self._file.path, error) from error

    def drop(self, folders: JailFolders) -> None:
        """Remove it if it is still on its way."""
        with contextlib.suppress(OSError, JailError):
            folder = folders.find(self._names)
            if folder is not None:
                os.unlink(self._staged, dir_fd=folder)


def staged_name(name: str, variant: str = "") -> str:
    """Name of a file on its way: always the same, so that killed processes leave at most one."""
    encoded = f"{variant}/{name}".encode(errors="replace")
    return f"{paths.OWN_PREFIX}{hashlib.sha256(encoded).hexdigest()[:16]}"


def _remove(folders: JailFolders, path: str) -> None:
    mode = _mode_at(folders, path)
    names, name = paths.split(path)
    folder = folders.find(names)
    if mode is None or folder is None or stat.S_ISDIR(mode):
        return
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise failed(path, error) from error


@contextlib.contextmanager
def _closing(descriptor: int) -> Generator[None]:
    try:
        yield
    finally:
        os.close(descriptor)
