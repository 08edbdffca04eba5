"""Room on the host for a test module that needs more nodes than the one of its process."""

from __future__ import annotations

import fcntl
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from penstock.local import inotify
from penstock.local.errors import LocalError

LOCK = Path(tempfile.gettempdir()) / "penstock-tests-further-nodes.lock"
PATIENCE_S = 480.0
"""Less than a test may take; the modules that hold the lock take a third of it."""


@contextmanager
def room(instances: int, lock: Path = LOCK, patience: float = PATIENCE_S) -> Generator[None]:
    """Lock out other modules with further nodes until the host has room for this one's.

    Test processes have a node each, and the kernel gives root 128 inotify instances for all of
    them. Two modules that each had half of what they need would wait for each other, so the lock
    comes first. If there is no room in time, the node that does not come up reports it.
    """
    deadline = time.monotonic() + patience
    with lock.open("w") as file:
        while not (_locked(file.fileno()) and _fits(instances)):
            if time.monotonic() > deadline:
                break
            time.sleep(1)
        yield


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _fits(instances: int) -> bool:
    try:
        inotify.check(instances)
    except LocalError:
        return False
    return True
