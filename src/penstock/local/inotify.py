"""How many inotify instances root may still make: a node that gets none hangs without a word.

The kernel counts them per user over the whole machine (fs.inotify.max_user_instances, 128 by
default). Containerd without one runs without its CRI, and the kubelet waits for that for ever.
"""

from pathlib import Path

from penstock.local.errors import LocalError

LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
FIRST_NODE, FURTHER_NODE = 21, 9
"""What a cluster's first node takes (measured: API server 6, controllers 5, `volumes` 1), and each
further one (kubelet 6, containerd 2, kube-proxy 1)."""


def used(proc: Path = Path("/proc"), user: int = 0) -> int:
    """Instances of the processes of `user`."""
    count = 0
    for folder in proc.glob("[0-9]*/fd"):
        try:
            if folder.stat().st_uid != user:
                continue
            links = list(folder.iterdir())
        except OSError:
            continue
        count += sum(map(_is_instance, links))
    return count


def _is_instance(link: Path) -> bool:
    try:
        return str(link.readlink()) == "anon_inode:inotify"
    except OSError:
        return False


def check(needed: int, proc: Path = Path("/proc"), limit: Path = LIMIT, user: int = 0) -> None:
    """Raise LocalError when `needed` more would be too many."""
    try:
        allowed = int(limit.read_text())
    except FileNotFoundError:
        return
    present = used(proc, user)
    if present + needed > allowed:
        raise LocalError(
            f"The node needs {needed} inotify instances; root uses {present} of "
            f"{allowed} on this machine. Raise the limit with sysctl "
            f"fs.inotify.max_user_instances={max(1024, 2 * allowed)}, or take other nodes down."
        )
