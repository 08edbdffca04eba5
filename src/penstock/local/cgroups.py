"""The cgroup of a node: a folder in each hierarchy, version 1, 2 or both."""

import contextlib
import os
import time
from pathlib import Path

from penstock.local.errors import LocalError

MOUNT = Path("/sys/fs/cgroup")
WANTED = ("cpu", "cpuset", "io", "memory", "pids", "hugetlb")
"""Controllers the kubelet uses, where the machine has them."""
SHARES = 1024
"""CPU shares of a core."""


def hierarchies(mount: Path = MOUNT) -> list[Path]:
    """The folders under which cgroups are made: one (version 2) or one each controller."""
    if (mount / "cgroup.controllers").exists():
        return [mount]
    # A symlink (cpu -> cpu,cpuacct) is the same hierarchy under a second name.
    return sorted(path for path in mount.iterdir() if path.is_dir() and not path.is_symlink())


def make(name: str, mount: Path = MOUNT) -> None:
    """Make the cgroup `name` in every hierarchy. Raises LocalError when that is not allowed."""
    try:
        for hierarchy in hierarchies(mount):
            _delegate(hierarchy)
            (hierarchy / name).mkdir(exist_ok=True)
            _inherit_cpuset(hierarchy, name)
            _weigh(hierarchy / name)
    except OSError as error:
        raise LocalError(
            f"Cannot make the cgroup {name} under {mount}: {error.strerror}. "
            "The built-in node needs writable cgroups."
        ) from error


def remove(name: str, mount: Path = MOUNT, timeout: float = 10.0) -> None:
    """Remove the cgroup and those below it; its processes must have ended.

    The kernel frees a cgroup only after the last process in it is reaped, so EBUSY is retried
    for `timeout` seconds.
    """
    if not mount.is_dir():
        return
    deadline = time.monotonic() + timeout
    for hierarchy in hierarchies(mount):
        while not _remove_tree(hierarchy / name):
            if time.monotonic() > deadline:
                raise LocalError(f"The cgroup {hierarchy / name} still has processes.")
            time.sleep(0.05)


def _remove_tree(top: Path) -> bool:
    if not top.is_dir():
        return True
    # From the innermost outwards. Unlike Path.rglob, os.walk passes over what goes meanwhile.
    for folder, _, _ in os.walk(top, topdown=False):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    return not top.exists()


def _delegate(hierarchy: Path) -> None:
    """On version 2 let children of the top folder have controllers."""
    offered = hierarchy / "cgroup.controllers"
    if offered.exists():
        enabled = " ".join(f"+{c}" for c in offered.read_text().split() if c in WANTED)
        (hierarchy / "cgroup.subtree_control").write_text(enabled)


def _weigh(folder: Path) -> None:
    """Give the group the CPU shares that the kubelet gives all pods of a machine (version 1).

    By default it would have those of one process, and pods would wait while a few others compute.
    """
    shares = folder / "cpu.shares"
    if shares.exists():
        shares.write_text(str(SHARES * (os.cpu_count() or 1)))


def _inherit_cpuset(hierarchy: Path, name: str) -> None:
    """On version 1 a new cpuset is empty, and then nothing can run in it."""
    for key in ("cpuset.cpus", "cpuset.mems"):
        child = hierarchy / name / key
        if child.exists() and (hierarchy / key).exists() and not child.read_text().strip():
            child.write_text((hierarchy / key).read_text())
