"""The daemons in pods, by the kernel's own record of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from penstock.local.process import Process


def of_pod(uid: str, name: str) -> list[Process]:
    """The processes called `name` in a pod, the oldest first."""
    marks = (uid, uid.replace("-", "_"))
    found: list[Process] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().strip() != name:
                continue
            cgroup = (folder / "cgroup").read_text()
        except OSError:
            continue
        process = Process.of(int(folder.name)) if any(mark in cgroup for mark in marks) else None
        if process is not None:
            found.append(process)
    return sorted(found, key=lambda one: one.start)


def started(uid: str, name: str) -> float | None:
    """When the first process called `name` in a pod started (seconds of the epoch)."""
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    found = of_pod(uid, name)
    return boot + found[0].start / os.sysconf("SC_CLK_TCK") if found else None
