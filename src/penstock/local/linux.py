"""The few Linux system calls that Python 3.11 lacks, and the question whether they may be used.

Numbers are those of mount(2), unshare(2) and sched.h.
"""

import ctypes
import os
import sys

from penstock.local.errors import LocalError

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_SHARED = 1 << 20
MNT_DETACH = 2


def require_root_linux() -> None:
    """Raise LocalError unless this is Linux and we are root."""
    reason = why_not()
    if reason:
        raise LocalError(reason)


def why_not() -> str:
    """Why the built-in node cannot run here; empty when it can."""
    if sys.platform != "linux":
        return (
            f"The built-in Kubernetes node needs Linux; this is {sys.platform}. "
            "Name a cluster of yours instead."
        )
    if os.geteuid() != 0:
        return (
            "The built-in Kubernetes node needs root (it makes namespaces, mounts and a network). "
            "Run this as root, or name a cluster of yours instead."
        )
    return ""


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones (unshare(2))."""
    _check(_libc().unshare(ctypes.c_int(flags)), "unshare")


def mount(
    source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None
) -> None:
    """Mount a file system (the page mount in section 2); OSError names the target."""
    done = _libc().mount(
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        data.encode() if data else None,
    )
    _check(done, f"mount {source} on {target}")


def unmount(target: str) -> None:
    """Detach a mount, also when busy (umount2(2))."""
    _check(_libc().umount2(target.encode(), ctypes.c_int(MNT_DETACH)), f"unmount {target}")


def enter_root(root: str) -> None:
    """Make the mount point `root` this mount namespace's root and let the old one go."""
    os.chdir(root)
    # pivot_root(2): with "." twice the old root lies under the new one and needs no folder.
    _check(_libc().pivot_root(b".", b"."), f"pivot_root to {root}")
    unmount(".")
    os.chdir("/")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
