"""Playing plans in many processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def test_no_process_plays_on_when_whoever_asked_was_killed() -> None:
    command = [sys.executable, "-m", "fault_plans", "--count", "100000", "--workers=2"]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, env=path, stdout=subprocess.DEVNULL) as asked:
        until(lambda: len(children(asked.pid)) >= 3)
        players = children(asked.pid)
        asked.kill()
    try:
        until(lambda: not [one for one in players if runs(one)])
    finally:
        for one in filter(runs, players):
            os.kill(one, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """The processes of the pool, and the one that keeps count of what they share."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)
