"""On what machine, and beside what load, figures were measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any


def facts() -> dict[str, Any]:
    """Cores, memory in GiB and kernel: what a figure may be compared by."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30),
        "kernel": platform.release(),
    }


def waited() -> float:
    """Seconds since boot in which some process was ready to run and had no core.

    The machine's own measure of load (/proc/pressure, Linux 4.20 and newer); 0 without it.
    """
    try:
        line = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    except OSError:
        return 0.0
    return int(line.rpartition("total=")[2]) / 1e6


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]
