#!/usr/bin/env python3
"""Fails while an idle node has memory in use that its next job was promised.

Counted is memory of the worker's container that the kernel cannot reclaim: of processes, shared
memory and files in memory. The daemons may have 1 GiB, or 2 % of the node's memory where that is
more.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(os.environ.get("CHECKS_ROOT") or "/")
GROUP = ROOT / "sys/fs/cgroup"
FILES = (
    (GROUP / "memory.stat", ("anon", "shmem", "slab_unreclaimable")),
    (GROUP / "memory/memory.stat", ("total_rss", "total_shmem")),
)
"""Of control groups, version 2 and 1."""
OWN_BYTES = 1 << 30
OWN_SHARE = 0.02
FAILED = 1


def finish(details: str, status: int = 0) -> int:
    """Report details; return the exit status."""
    print(details)
    os.write(3, f"{details}\n".encode())
    return status


def has_jobs() -> bool:
    """Whether a step runs on this node."""
    for path in (ROOT / "proc").glob("[0-9]*/comm"):
        try:
            if path.read_text(encoding="utf-8").startswith("slurmstepd"):
                return True
        except OSError:
            continue
    return False


def used_bytes() -> int | None:
    """Memory that cannot be reclaimed; None without control groups."""
    for path, names in FILES:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError:
            continue
        found = dict(line.split(maxsplit=1) for line in lines if " " in line)
        return sum(int(found.get(name, "0")) for name in names)
    return None


def main() -> int:
    """Compare the memory in use with the node's."""
    text = os.environ.get("CHECKS_NODE_REAL_MEM_BYTES", "")
    whole = int(text) if text.isdecimal() else 0
    if not whole:
        return finish("skipped: the node's memory is unknown")
    if has_jobs():
        return finish("skipped: jobs run on the node")
    used = used_bytes()
    if used is None:
        return finish("skipped: the container has no control group of memory")
    most = max(OWN_BYTES, int(whole * OWN_SHARE))
    if used <= most:
        print(f"{used >> 20} MiB are in use")
        return 0
    words = f"{used >> 20} MiB of {whole >> 20} MiB are in use without a job, at most {most >> 20}"
    return finish(f"{words} MiB may be", FAILED)


if __name__ == "__main__":
    sys.exit(main())
