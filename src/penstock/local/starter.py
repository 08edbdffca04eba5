"""Who started a cluster: shown by `penstock local list`, and whose end may be the cluster's."""

from __future__ import annotations

import os
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from penstock.local.process import Process


@dataclass(frozen=True)
class Starter:
    """The process that brought a cluster up."""

    pid: int
    start: int
    """As in `Process`."""
    command: str
    folder: str
    """Its working directory."""
    since: float
    """When it began to bring the cluster up, in seconds of the epoch."""
    bound: bool = False
    """Whether the cluster ends with it: as under `with Node(...)`, however the process ends."""

    @property
    def process(self) -> Process:
        """The process, which may have ended."""
        return Process(self.pid, self.start)


def this_process(*, bound: bool) -> Starter:
    """The running process as a starter."""
    mine = Process.of(os.getpid())
    start = mine.start if mine is not None else 0
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    return Starter(os.getpid(), start, command, str(Path.cwd()), time.time(), bound)
