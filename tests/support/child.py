"""Runs a program to its end, also where the process that started it gets a signal to end."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType


def run(
    command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> int:
    """The exit status of a program, such as pytest.

    A SIGTERM of this process is passed on and a Ctrl-C goes to both: the program is waited for,
    as its fixtures take nodes down, and SystemExit is raised then. `subprocess.run` kills it.
    """
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if number == signal.SIGTERM and process is not None:
            process.terminate()

    process: subprocess.Popen[bytes] | None = None
    former = {one: signal.signal(one, note) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        if not came:
            process = subprocess.Popen(command, cwd=cwd, env=env)
            if came:
                process.terminate()
            status = process.wait()
            if not came:
                return status
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    raise SystemExit(128 + came[0])
