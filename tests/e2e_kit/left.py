"""What clusters of the built-in node leave on the machine."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.local.layout import Layout


def left_of(name: str) -> list[str]:
    """Everything that a cluster of this name may leave."""
    layout = Layout(name)
    found = [str(path) for path in (layout.folder, layout.lock) if path.exists()]
    return [*found, *groups(f"penstock-*-{name}*"), *in_use(layout.folder)]


def groups(pattern: str) -> list[str]:
    """Control groups of such a name."""
    # Groups of other nodes come and go meanwhile; os.walk passes over what is gone.
    every = (Path(at, one) for at, inner, _ in os.walk("/sys/fs/cgroup") for one in inner)
    return [str(one) for one in every if one.match(pattern)]


def in_use(folder: Path) -> list[str]:
    """Mounts below a folder, and processes whose command names it, but this one."""
    found = [m for m in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in m]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command and int(process.name) != os.getpid():
            found.append(f"{process.name}: {command}")
    return found
