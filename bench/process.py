"""When the daemons in pods started, by the kernel's own record of them."""

from __future__ import annotations

import os
import time
from pathlib import Path


def started(uid: str, name: str) -> float | None:
    """When the first process called `name` in a pod started (seconds of the epoch)."""
    marks = (uid, uid.replace("-", "_"))
    found: list[float] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            if _name(stat) != name:
                continue
            cgroup = (folder / "cgroup").read_text()
        except OSError:
            continue
        if any(mark in cgroup for mark in marks):
            found.append(_start(stat))
    return min(found, default=None)


def _name(stat: str) -> str:
    return stat[stat.index("(") + 1 : stat.rindex(")")]


def _start(stat: str) -> float:
    """Field 22 of proc(5): clock ticks after boot."""
    ticks = int(stat[stat.rindex(")") + 2 :].split()[19])
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return boot + ticks / os.sysconf("SC_CLK_TCK")
