"""Starting and ending a node's first process, and running commands inside a node."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from penstock.local import process
from penstock.local.errors import LocalError
from penstock.local.layout import Layout
from penstock.local.process import Process

END_TIMEOUT = 30.0
"""Seconds that the kernel gets to end everything in a node."""


def launch(layout: Layout, connect: Callable[[Process], None]) -> Process:
    """Start the node's first process and `connect` its network. Raises LocalError."""
    with (layout.logs / "init.log").open("ab") as log:
        starter = subprocess.Popen(
            [sys.executable, "-m", "penstock.local.init", str(layout.folder)],
            stdin=subprocess.PIPE,
            bufsize=0,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    # It leaves the first process waiting for our word; without it that process ends.
    with starter:
        code = starter.wait()
        first = process.load(layout.pid)
        if code != 0 or first is None:
            raise LocalError(f"The node cannot start:\n{tail(layout.logs / 'init.log')}")
        connect(first)
        # If it has ended already, the wait for its components fails with the reason.
        with contextlib.suppress(BrokenPipeError):
            if starter.stdin is not None:
                starter.stdin.write(b"go\n")
    return first


def end(layout: Layout) -> None:
    """End the node's first process, and with it every process of the node."""
    first = process.load(layout.pid)
    if first is not None:
        first.signal(signal.SIGKILL)
        if not first.wait(END_TIMEOUT):
            raise LocalError(
                f"Process {first.pid} of node {layout.further or layout.name} does not end."
            )


def enter(first: Process) -> list[str]:
    """The beginning of a command that runs in the node's namespaces."""
    spaces = ("--mount", "--uts", "--ipc", "--net", "--pid")
    return ["nsenter", "--target", str(first.pid), *spaces, "--root", "--wd", "--"]


def inside(first: Process, command: Sequence[str], stdin: IO[bytes] | None = None) -> str:
    """Standard output of `command`, run in the node's namespaces. Raises LocalError."""
    done = subprocess.run([*enter(first), *command], stdin=stdin, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise LocalError(f"{' '.join(command)} failed in the node: {said}")
    return done.stdout.decode()


def tail(path: Path, lines: int = 15) -> str:
    """The last lines of a log."""
    if not path.is_file():
        return ""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
