"""Makes the changes of a plan in a jail, or undoes them.

Jobs and sessions go on meanwhile, as beside apt: each file is renamed into place when it is
complete. What a path had before is in the journal first, so that a killed run is continued.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from jail_files import opened, read
from upgrade_journal import Journal, Record, meta, split
from upgrade_packages import MERGED, STATUS, PackagePlan, merged_accounts
from upgrade_plan import Change, Plan
from upgrade_tree import ATTRIBUTES, Entry, Folder, entry, same

BATCH = 200
"""Changes for which the disk is waited once."""
_CHANGED = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Of a path that somebody else changed."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV, errno.EMLINK, errno.ENOSYS)
One = TypeVar("One")


@dataclass
class Outcome:
    """Numbers of paths. `kept` are those that somebody else changed meanwhile."""

    changed: int = 0
    kept: int = 0


class Upgrade:
    """Changes to the jail at a path. `new` is the root of the image."""

    def __init__(self, journal: Journal, new: Folder) -> None:
        self._journal = journal
        self._new = new
        self._jail = journal.jail
        self._number = 0
        self._linked: dict[tuple[int, int], tuple[str, int]] = {}
        """Path and number of an inode of the image that was written, for its other names."""
        self.outcome = Outcome()

    def apply(self, plan: Plan) -> None:
        """Make all changes. Raises OSError."""
        self._journal.begin()
        records = self._journal.records()
        known = {one.path for one in records}
        self._number = max((one.number for one in records), default=0)
        for changes in _batches(plan.changes):
            ready = [self._prepare(change, is_known=change.path in known) for change in changes]
            self._journal.write()
            for finish in ready:
                self.outcome.changed += finish()
        self._journal.write()

    def _prepare(self, change: Change, *, is_known: bool) -> Callable[[], bool]:
        """Write what is renamed into place, and the record; return what does the rest.

        That returns whether the path was changed.
        """
        folder, name = split(change.path)
        self._number += 1
        number = self._number
        after = change.image
        in_place = after is None or after.is_folder
        if not in_place:
            made = self._make(change, number)
            now = meta(made)
        else:
            now = meta(after)
        if not is_known:
            self._save(change, number)
            text = change.text
            self._journal.add(Record(change.path, number, meta(change.jail), now, text))

        def finish() -> bool:
            try:
                with opened(self._jail, folder) as at:
                    if meta(entry(at, name)) != meta(change.jail):
                        raise FileExistsError(errno.EEXIST, "it was changed meanwhile", name)
                    self._finish(change, number, at, name)
            except OSError as error:
                if error.errno not in _CHANGED:
                    raise
                print(f"! /{change.path}: {error.strerror}, it stays", flush=True)
                self.outcome.kept += 1
                return False
            return True

        return finish

    def _finish(self, change: Change, number: int, at: int, name: str) -> None:
        after, before = change.image, change.jail
        if after is None:
            _remove(at, name)
        elif after.is_folder:
            if before is not None and not before.is_folder:
                os.unlink(name, dir_fd=at)
            if not change.owner_only:
                os.mkdir(name, 0o700, dir_fd=at)
            _own(at, name, after)
        else:
            if before is not None and before.is_folder:
                os.rmdir(name, dir_fd=at)
            with self._journal.folder("new") as new:
                os.rename(str(number), name, src_dir_fd=new, dst_dir_fd=at)

    def _make(self, change: Change, number: int) -> Entry | None:
        """The new entry in the folder `new` of the journal."""
        after, name = change.image, str(number)
        if after is None:
            return None
        with self._journal.folder("new") as new:
            if change.text is not None:
                _write(new, name, after, [change.text.encode(errors="surrogateescape")], {})
            elif not after.is_file:
                _special(new, name, after)
            elif not self._link(after, new, name):
                folder, source = split(change.path)
                with self._new.at(folder) as at:
                    _write(new, name, after, at.blocks(source), at.attributes(source))
                self._linked[after.about.st_dev, after.about.st_ino] = change.path, number
            return entry(new, name)

    def _link(self, after: Entry, new: int, name: str) -> bool:
        """Give another name to an inode that was written; return whether there is one."""
        if after.about.st_nlink == 1:
            return False
        written = self._linked.get((after.about.st_dev, after.about.st_ino))
        if written is None:
            return False
        path, number = written
        with contextlib.suppress(FileNotFoundError):
            # It is not renamed into place yet.
            os.link(str(number), name, src_dir_fd=new, dst_dir_fd=new)
            return True
        folder, source = split(path)
        with contextlib.suppress(OSError), opened(self._jail, folder) as at:
            found = entry(at, source)
            if found is not None and found.is_like(after):
                os.link(source, name, src_dir_fd=at, dst_dir_fd=new, follow_symlinks=False)
                return True
        return False

    def _save(self, change: Change, number: int) -> None:
        before = change.jail
        if before is None or before.is_folder:
            return
        folder, name = split(change.path)
        with (
            contextlib.suppress(FileNotFoundError),
            opened(self._jail, folder) as at,
            self._journal.folder("saved") as saved,
        ):
            _copy_name(at, name, saved, str(number))


def undo(journal: Journal) -> Outcome:
    """Put back what an upgrade replaced; what was changed since stays. Raises OSError."""
    outcome = Outcome()
    journal.begin()
    for record in reversed(journal.records()):
        folder, name = split(record.path)
        try:
            with opened(journal.jail, folder) as at:
                outcome.changed += _undo_one(journal, record, at, name)
        except OSError as error:
            if error.errno not in _CHANGED:
                raise
            print(f"! /{record.path}: {error.strerror}, it stays", flush=True)
            outcome.kept += 1
    journal.write()
    return outcome


def _undo_one(journal: Journal, record: Record, at: int, name: str) -> bool:
    present = meta(entry(at, name))
    if present == record.was and (record.was != record.now or _is_back(journal, record, at, name)):
        return False
    if present != record.now:
        if record.text is not None and _undo_merge(journal, record, at, name):
            return True
        raise FileExistsError(errno.EEXIST, "it was changed since", name)
    if record.was is None:
        _remove(at, name)
        return True
    is_folder = stat.S_ISDIR(record.was.mode)
    if present is not None and stat.S_ISDIR(present.mode) and not is_folder:
        os.rmdir(name, dir_fd=at)
    elif present is not None and not stat.S_ISDIR(present.mode) and is_folder:
        os.unlink(name, dir_fd=at)
    if is_folder:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=at)
        os.chown(name, record.was.uid, record.was.gid, dir_fd=at, follow_symlinks=False)
        _chmod(at, name, stat.S_IMODE(record.was.mode))
        return True
    with journal.folder("saved") as saved, journal.folder("new") as new:
        _copy_name(saved, str(record.number), new, "back")
        os.rename("back", name, src_dir_fd=new, dst_dir_fd=at)
    return True


def _is_back(journal: Journal, record: Record, at: int, name: str) -> bool:
    """Whether a path that has the same size and time before and after is as before.

    Files of images that were built with one time for all differ in their content alone.
    """
    if record.was is None or stat.S_ISDIR(record.was.mode):
        return True
    with journal.folder("saved") as saved:
        return same(name, Folder(at), Folder(saved), str(record.number))


def _undo_merge(journal: Journal, record: Record, at: int, name: str) -> bool:
    """A merged file that was changed since: what the upgrade brought goes, the rest stays."""
    about = entry(at, name)
    if about is None or not about.is_file or record.text is None:
        return False
    with journal.folder("saved") as saved, journal.folder("new") as new:
        text = _merged(record.path, record.text, read(saved, str(record.number)), read(at, name))
        _write(new, "back", about, [text.encode(errors="surrogateescape")], {})
        os.rename("back", name, src_dir_fd=new, dst_dir_fd=at)
    return True


def _merged(path: str, brought: str, saved: str, present: str) -> str:
    if path == STATUS:
        return PackagePlan(brought, saved, present).status()
    if path not in MERGED:
        return present
    gone = {*brought.splitlines()} - {*saved.splitlines()}
    kept = "".join(f"{one}\n" for one in present.splitlines() if one not in gone)
    return merged_accounts(path, brought, saved, kept)


def _batches(items: list[One]) -> Generator[list[One]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def _remove(at: int, name: str) -> None:
    found = entry(at, name)
    if found is not None and found.is_folder:
        os.rmdir(name, dir_fd=at)
    elif found is not None:
        os.unlink(name, dir_fd=at)


def _copy_name(source: int, name: str, target: int, as_name: str) -> None:
    """Another name of the same inode, or a copy where the file system has no such names."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(as_name, dir_fd=target)
    try:
        os.link(name, as_name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        about = entry(source, name)
        if about is None:
            raise
        if about.is_file:
            folder = Folder(source)
            _write(target, as_name, about, folder.blocks(name), folder.attributes(name))
        else:
            _special(target, as_name, about)


def _write(
    folder: int, name: str, about: Entry, blocks: Iterable[bytes], attributes: dict[str, bytes]
) -> None:
    """A new file with the owner, mode, time and attributes of another one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb", buffering=0) as file:
        for block in blocks:
            view = memoryview(block)
            while view:
                view = view[file.write(view) or 0 :]
        fd = file.fileno()
        # A change of the owner removes set-user-ID and capabilities, so it comes first.
        os.fchown(fd, about.about.st_uid, about.about.st_gid)
        os.fchmod(fd, stat.S_IMODE(about.about.st_mode))
        for one in ATTRIBUTES:
            if one in attributes:
                os.setxattr(fd, one, attributes[one])
        os.utime(fd, ns=(about.about.st_mtime_ns, about.about.st_mtime_ns))


def _special(folder: int, name: str, about: Entry) -> None:
    """A new symbolic link, device, pipe or socket."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    if about.is_link:
        os.symlink(about.target, name, dir_fd=folder)
    else:
        os.mknod(name, about.about.st_mode, about.about.st_rdev, dir_fd=folder)
    _own(folder, name, about)


def _own(at: int, name: str, about: Entry) -> None:
    os.chown(name, about.about.st_uid, about.about.st_gid, dir_fd=at, follow_symlinks=False)
    if not about.is_link:
        _chmod(at, name, stat.S_IMODE(about.about.st_mode))


def _chmod(at: int, name: str, mode: int) -> None:
    """chmod(2) follows a link, and users may have put one there."""
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    try:
        if not stat.S_ISLNK(os.fstat(fd).st_mode):
            Path(f"/proc/self/fd/{fd}").chmod(mode)
    finally:
        os.close(fd)
