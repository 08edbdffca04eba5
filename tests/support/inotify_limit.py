"""Room for the nodes of a whole run: the kernel's limit on inotify instances of root."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.local.inotify import LIMIT

WANTED = 1024
"""Instances: by default the kernel has 128, and five clusters with ten nodes take some 140."""


@contextmanager
def raised_limit(limit: Path = LIMIT) -> Generator[None]:
    """Raise the limit of the computer and put the former one back; without the right, do nothing.

    One cluster's last instance may be what another's container wanted, which then fails anywhere.
    """
    try:
        former = int(limit.read_text())
        if former < WANTED:
            limit.write_text(f"{WANTED}\n")
    except OSError:
        yield
        return
    try:
        yield
    finally:
        if former < WANTED:
            with suppress(OSError):
                limit.write_text(f"{former}\n")
