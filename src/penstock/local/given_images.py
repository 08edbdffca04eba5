"""The images that a cluster was given: each of its nodes gets them, also one that comes later."""

import contextlib
import os
from pathlib import Path

from penstock.local import ctr
from penstock.local.cache import digest
from penstock.local.errors import LocalError
from penstock.local.layout import Layout
from penstock.local.process import Process


def keep(layout: Layout, archive: Path) -> None:
    """Note an archive for nodes that come later: as a hard link, so that it cannot vanish.

    On another file system it is a symbolic link: copying would take the node's time and disk.
    """
    layout.images.mkdir(exist_ok=True)
    kept = layout.images / _name(archive)
    if kept.is_symlink() or kept.exists():
        return
    with contextlib.suppress(OSError):
        os.link(archive, kept)
        return
    kept.symlink_to(archive.resolve())


def load(layout: Layout, first: Process, archive: Path) -> None:
    """Import an archive into one node, and note that the node has it."""
    ctr.load(first, archive)
    done = layout.folder / "imported"
    done.mkdir(exist_ok=True)
    (done / _name(archive)).touch()


def load_missing(layout: Layout, first: Process) -> None:
    """Import what the cluster has been given and this node lacks. Raises LocalError."""
    if not layout.images.is_dir():
        return
    for kept in sorted(layout.images.iterdir()):
        if (layout.folder / "imported" / kept.name).exists():
            continue
        if not kept.exists():
            raise LocalError(
                f"The image archive {kept.readlink()} was imported into cluster {layout.name} "
                "and is gone. Import it again before you add or start a node."
            )
        load(layout, first, kept)


def _name(archive: Path) -> str:
    """The same for the same content: a hard link has the inode of what it was made from."""
    found = archive.stat()
    parts = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    return f"{digest(*map(str, parts))}.tar"
