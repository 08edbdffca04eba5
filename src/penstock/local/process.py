"""Processes that are ours, distinguished from later ones with the same number.

A process is its pid together with its start time (proc(5), /proc/pid/stat field 22, in clock
ticks since boot): a pid alone may belong to somebody else by the time it is used.
"""

import contextlib
import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One process of this machine."""

    pid: int
    start: int
    """Clock ticks from boot to its start."""

    @classmethod
    def of(cls, pid: int) -> "Process | None":
        """The process that has `pid` now; None when there is none (or only its remains)."""
        found = _stat(pid)
        return None if found is None else cls(pid, found[0])

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return Process.of(self.pid) == self

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to this process and to no other; False when it is gone."""
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(self.pid)
            try:
                # The handle is bound now; if the start time fits, it is bound to ours.
                if self.alive:
                    signal.pidfd_send_signal(handle, number)
                    return True
            finally:
                os.close(handle)
        return False

    def wait(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for its end; whether it ended."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if not self.alive:
                return True
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            return bool(poll.poll(timeout * 1000))
        finally:
            os.close(handle)

    def children(self) -> "dict[str, Process]":
        """Its direct children by command name."""
        found: dict[str, Process] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            pid = int(folder.name)
            seen = _stat(pid)
            if seen is None or seen[1] != self.pid:
                continue
            with contextlib.suppress(OSError):
                command = (folder / "cmdline").read_bytes().split(b"\0")[0]
                found[os.fsdecode(command).rpartition("/")[2]] = Process(pid, seen[0])
        return found


def save(path: Path, process: Process) -> None:
    """Write a pid file, complete or not at all."""
    new = path.with_name(path.name + ".new")
    new.write_text(f"{process.pid} {process.start}\n")
    new.rename(path)


def load(path: Path) -> Process | None:
    """The process of a pid file if it still runs."""
    try:
        words = path.read_text().split()
        process = Process(int(words[0]), int(words[1]))
    except (FileNotFoundError, IndexError, ValueError):
        return None
    return process if process.alive else None


def parse_stat(text: str) -> tuple[str, int, int]:
    """State, parent's pid and start time of a line of /proc/pid/stat."""
    # The command's name stands in parentheses and may hold both spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[1]), int(fields[19])


def _stat(pid: int) -> tuple[int, int] | None:
    try:
        state, parent, start = parse_stat(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else (start, parent)
