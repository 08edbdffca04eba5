"""What an upgrade replaced, so that it can be undone: a folder of the jail's own volume.

upgrades/ID/journal   a line of JSON for each path, before it changes
upgrades/ID/saved/N   the former file, as a hard link where the file system has them
upgrades/ID/new/N     what is renamed into place
upgrades/ID/done      the result, once all is changed
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jail_files import FILE, opened, read, replace
from upgrade_plan import OWN
from upgrade_tree import Entry

UPGRADES = f"{OWN}/upgrades"
_PRIVATE = 0o700


@dataclass(frozen=True)
class Meta:
    """What distinguishes an entry from another one."""

    mode: int
    uid: int
    gid: int
    size: int
    mtime: int
    target: str = ""
    rdev: int = 0


def meta(entry: Entry | None) -> Meta | None:
    """An entry as the journal has it. A folder's size and time follow from what is in it."""
    if entry is None:
        return None
    about = entry.about
    of_folder = entry.is_folder
    return Meta(
        about.st_mode,
        about.st_uid,
        about.st_gid,
        0 if of_folder else about.st_size,
        0 if of_folder or entry.is_link else about.st_mtime_ns,
        entry.target,
        about.st_rdev,
    )


@dataclass(frozen=True)
class Record:
    """One path. `number` names the file in saved, and `text` is what a merged file became."""

    path: str
    number: int
    was: Meta | None
    now: Meta | None
    text: str | None = None


class Journal:
    """The folder of one upgrade. Raises OSError."""

    def __init__(self, jail: str, upgrade: str) -> None:
        self.jail = Path(jail)
        self.path = f"{UPGRADES}/{upgrade}"
        self._upgrade = upgrade
        self._lines: list[str] = []

    @property
    def exists(self) -> bool:
        """Whether the upgrade has changed anything that was not undone."""
        with contextlib.suppress(OSError), opened(self.jail, self.path):
            return True
        return False

    @contextlib.contextmanager
    def folder(self, name: str = "") -> Generator[int]:
        """One of its folders, as a descriptor."""
        with opened(self.jail, f"{self.path}/{name}" if name else self.path) as fd:
            yield fd

    def begin(self) -> None:
        """Make the folders, and remove what a killed run had not renamed yet."""
        with opened(self.jail, f"{self.path}/saved", make=True):
            pass
        with opened(self.jail, UPGRADES) as fd:
            os.fchmod(fd, _PRIVATE)
        with self.folder() as fd:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree("new", dir_fd=fd)
            os.mkdir("new", _PRIVATE, dir_fd=fd)

    def records(self) -> list[Record]:
        """All records, in order; a line that was cut off is no record."""
        found: list[Record] = []
        with self.folder() as fd, contextlib.suppress(FileNotFoundError):
            file = os.open("journal", FILE, dir_fd=fd)
            with os.fdopen(file, encoding="utf-8", errors="surrogateescape") as lines:
                for line in lines:
                    with contextlib.suppress(ValueError):
                        found.append(_record(json.loads(line)))
        return found

    def add(self, record: Record) -> None:
        """Add a record; it is there after write."""
        self._lines.append(json.dumps(asdict(record)))

    def write(self) -> None:
        """Write the records that were added, and all else, to the disk."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with self.folder() as fd:
            file = os.open("journal", flags, 0o600, dir_fd=fd)
            with os.fdopen(file, "w", encoding="utf-8", errors="surrogateescape") as lines:
                # The line of a killed run may have no end.
                lines.write("".join(f"\n{one}" for one in self._lines))
            self._lines.clear()
            subprocess.run(["sync", "-f", f"/proc/self/fd/{fd}"], check=True, pass_fds=(fd,))

    def result(self) -> str:
        """The text of `done`; empty before the end."""
        with self.folder() as fd:
            return read(fd, "done")

    def finish(self, text: str) -> None:
        """Note the end; what former upgrades replaced goes."""
        with self.folder() as fd:
            replace(fd, "done", text)
        with opened(self.jail, UPGRADES) as fd:
            with os.scandir(fd) as found:
                others = [one.name for one in found if one.name != self._upgrade]
            for name in others:
                shutil.rmtree(name, dir_fd=fd)

    def remove(self) -> None:
        """Remove it."""
        with opened(self.jail, UPGRADES) as fd:
            shutil.rmtree(self._upgrade, dir_fd=fd)


def _record(found: dict[str, Any]) -> Record:
    was, now = (Meta(**found[one]) if found[one] is not None else None for one in ("was", "now"))
    return Record(found["path"], found["number"], was, now, found["text"])


def split(path: str) -> tuple[str, str]:
    """Folder and name of a path."""
    folder, _, name = path.rpartition("/")
    return folder, name
