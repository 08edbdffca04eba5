"""The words of this container's daemons, as `journalctl` shows them: by unit, the last, or as told.

Options are those of journalctl(1) that make sense without journald; what is not known is refused.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import signal
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from journal import FOLDER

POLL_SECONDS = 0.25
LAST = 10
END = 1000
"""Lines that -e shows. Source: journalctl(1), --pager-end."""
ALIASES = {"ssh": "sshd"}
"""Debian's name of the unit."""
STAMPS = {"short": "%b %d %H:%M:%S", "short-iso": "%Y-%m-%dT%H:%M:%S%z"}


@dataclass(frozen=True)
class Entry:
    """One line of a daemon."""

    at: float
    unit: str
    pid: str
    text: str


class Unit:
    """The files of one unit, read from the oldest line on."""

    def __init__(self, path: Path) -> None:
        self.name = path.name.removesuffix(".log")
        self._path = path
        self._file: BufferedReader | None = None
        self._rest = b""

    def read(self) -> list[Entry]:
        """Return what has come since it was last asked."""
        got = b""
        if self._file is None:
            former = self._path.with_suffix(".log.1")
            got = former.read_bytes() if former.exists() else b""
        got += self._more()
        while self._replaced():
            # The supervisor began another file; what is left of the former one comes first.
            got += self._more()
            self._close()
            got += self._more()
        whole, _, self._rest = (self._rest + got).rpartition(b"\n")
        lines = whole.decode(errors="replace").split("\n")
        return [self._entry(line) for line in lines if line.count(" ") > 1]

    def _more(self) -> bytes:
        try:
            if self._file is None:
                self._file = self._path.open("rb")
        except FileNotFoundError:
            return b""
        return self._file.read()

    def _replaced(self) -> bool:
        if self._file is None:
            return False
        try:
            return self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            return False

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _entry(self, line: str) -> Entry:
        at, pid, text = line.split(" ", 2)
        return Entry(float(at), self.name, pid, text)


class Units:
    """The units of the container that were asked for; more come as their daemons speak."""

    def __init__(self, folder: Path, wanted: Sequence[str]) -> None:
        names = [name.removesuffix(".service") for name in wanted]
        self._wanted = [ALIASES.get(name, name) for name in names]
        self._folder = folder
        self._units: dict[Path, Unit] = {}

    def read(self) -> list[Entry]:
        """Return what has come since, in the order of time."""
        # Between two files there is only the former one.
        for one in sorted(self._folder.glob("*.log*")):
            path = one.with_name(f"{one.name.partition('.log')[0]}.log")
            name = path.name.removesuffix(".log")
            fits = any(fnmatch.fnmatchcase(name, one) for one in self._wanted)
            if path not in self._units and (fits or not self._wanted):
                self._units[path] = Unit(path)
        every = [entry for unit in self._units.values() for entry in unit.read()]
        return sorted(every, key=lambda entry: entry.at)


def shown(entries: Iterable[Entry], output: str) -> str:
    """Return the lines of entries in a format of journalctl."""
    if output == "cat":
        return "".join(f"{entry.text}\n" for entry in entries)
    host = socket.gethostname()
    return "".join(
        f"{time.strftime(STAMPS[output], time.localtime(entry.at))} {host} "
        f"{entry.unit}[{entry.pid}]: {entry.text}\n"
        for entry in entries
    )


def number(text: str) -> int | None:
    """Return how many lines are asked for, None for all. Raises ValueError."""
    return None if text == "all" else abs(int(text))


def options(arguments: list[str]) -> argparse.Namespace:
    """Return the options; ends the process on one that is not known."""
    parser = argparse.ArgumentParser(
        "journalctl",
        description="Shows what the daemons of this container said since it started.",
        epilog="There is no journald here; all of it is in the log of the container as well.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-u", "--unit", action="append", default=[], help="only of this daemon, such as sssd")
    add("-n", "--lines", nargs="?", type=number, const=LAST, default=False, help="only the last")
    add("-f", "--follow", action="store_true", help="go on as more is said")
    add("-r", "--reverse", action="store_true", help="the newest first")
    add("-e", "--pager-end", action="store_true", help=f"the last {END} lines")
    add("-o", "--output", choices=[*STAMPS, "cat"], default="short")
    add("-x", "--catalog", action="store_true", help="there are no explanations to add")
    add("-b", "--boot", action="store_true", help="all there is began with the container")
    add("-q", "--quiet", action="store_true", help="do not say that there is nothing")
    add("--no-pager", action="store_true", help="there never is one")
    return parser.parse_args(arguments)


def main(arguments: list[str], folder: Path = FOLDER) -> int:
    """Print what is asked for; return the exit status."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    wish = options(arguments)
    if folder.exists() and not os.access(folder, os.R_OK | os.X_OK):
        print("journalctl: only root may read what the daemons said", file=sys.stderr)
        return 1
    units = Units(folder, wish.unit)
    entries = units.read()
    last: int | None = wish.lines if wish.lines is not False else None
    if wish.lines is False and (wish.follow or wish.pager_end):
        last = LAST if wish.follow else END
    if last is not None:
        entries = entries[-last:] if last else []
    if not entries and not wish.follow and not wish.quiet:
        print("-- No entries --")
    sys.stdout.write(shown(reversed(entries) if wish.reverse else entries, wish.output))
    while wish.follow:
        sys.stdout.flush()
        time.sleep(POLL_SECONDS)
        sys.stdout.write(shown(units.read(), wish.output))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
