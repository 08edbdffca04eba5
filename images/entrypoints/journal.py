"""What the daemons of a container say: to the container's log, and kept by unit for `journalctl`.

There is no journald in a container. The supervisor reads what its daemons write, hands it on to
the container's log line by line, and keeps the last of it in a folder, a file for each daemon.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

FOLDER = Path("/run/penstock/journal")
KEPT_BYTES = 1 << 20
"""A unit's file that is larger becomes the former one, and a new one begins."""
CHUNK = 1 << 16
CHUNKS = 16
"""Read at a time, so that one daemon that floods does not keep process 1 from the others."""
LONGEST = 1 << 16
"""Bytes after which a line that does not end is taken for one."""

Edit = Callable[[str], str | None]
"""What becomes of a line of a daemon; None leaves it out."""


def as_it_is(line: str) -> str | None:
    """Answer for a daemon whose lines are all shown."""
    return line


class Journal:
    """The file of one unit: a line is `SECONDS PID TEXT`, with the time in Unix seconds."""

    def __init__(self, folder: Path, unit: str) -> None:
        self.path = folder / f"{unit}.log"
        self._lost = False
        try:
            # What sshd says of logins is for root.
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            self._lost = True

    def keep(self, pid: int, lines: list[str]) -> None:
        """Append lines of a process. A disk that takes no more must not end the container."""
        if self._lost or not lines:
            return
        head = f"{time.time():.6f} {pid} "
        try:
            with self.path.open("a", encoding="utf-8", errors="replace") as file:
                file.writelines(f"{head}{line}\n" for line in lines)
                size = file.tell()
            if size > KEPT_BYTES:
                self.path.replace(self.path.with_suffix(".log.1"))
        except OSError as why:
            self._lost = True
            with contextlib.suppress(OSError):
                print(f"penstock: {self.path} is not kept: {why}", file=sys.stderr, flush=True)


class Voice:
    """The pipe that a daemon has for its standard output and error."""

    def __init__(self, unit: str, folder: Path, edit: Edit) -> None:
        self.read, self.write = os.pipe()
        os.set_blocking(self.read, False)
        self._journal = Journal(folder, unit)
        self._edit = edit
        self._rest = b""

    def hand_on(self, pid: int) -> None:
        """Take what there is; `pid` is the process that is the daemon now."""
        got = self._rest
        with contextlib.suppress(BlockingIOError):
            for _ in range(CHUNKS):
                got += os.read(self.read, CHUNK)
        whole, newline, self._rest = got.rpartition(b"\n")
        if len(self._rest) > LONGEST:
            whole, newline, self._rest = whole + newline + self._rest, b"\n", b""
        if newline:
            self._tell(pid, whole.decode(errors="replace").split("\n"))

    def finish(self, pid: int) -> None:
        """Take what there is, and what has no end as a line."""
        self.hand_on(pid)
        rest, self._rest = self._rest, b""
        if rest:
            self._tell(pid, [rest.decode(errors="replace")])

    def _tell(self, pid: int, every: list[str]) -> None:
        lines = [line for one in every if (line := self._edit(one)) is not None]
        self._journal.keep(pid, lines)
        with contextlib.suppress(OSError):
            sys.stderr.write("".join(f"{line}\n" for line in lines))
            sys.stderr.flush()
