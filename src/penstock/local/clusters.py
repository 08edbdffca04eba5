"""All clusters of this machine: what runs, who started it, and the end of all of it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.local import buildah, process, record
from penstock.local.errors import LocalError
from penstock.local.launch import END_TIMEOUT
from penstock.local.layout import Layout, state_dir
from penstock.local.linux import require_root_linux
from penstock.local.node import Node
from penstock.local.process import Process
from penstock.local.starter import Starter

INIT = "penstock.local.init"
DAY_S = 86400.0


@dataclass(frozen=True)
class Listed:
    """One cluster as `penstock local list` shows it."""

    name: str
    state: str
    """As in `Status`."""
    nodes: int
    """Its Kubernetes nodes."""
    pid: int | None
    """Of its first process, while that runs."""
    folder: Path
    starter: Starter | None


def listed() -> list[Listed]:
    """Every cluster below the state folder, by name."""
    found: list[Listed] = []
    for folder in record.nodes():
        layout = Layout(folder.name)
        there, first = record.load(layout), process.load(layout.pid)
        found.append(
            Listed(
                folder.name,
                Node(folder.name).status().state,
                1 + len(layout.all_further),
                first.pid if first is not None else None,
                folder,
                there.starter if there is not None else None,
            )
        )
    return found


def table(rows: list[Listed], now: float) -> list[tuple[str, ...]]:
    """Titles and rows for people; `now` in seconds of the epoch."""
    head = ("NAME", "STATE", "NODES", "PID", "SINCE", "STARTED BY", "IN", "STATE FOLDER")
    lines: list[tuple[str, ...]] = [head]
    for one in rows:
        by = one.starter
        since = time.strftime("%H:%M:%S", time.localtime(by.since)) if by else "-"
        if by and now - by.since >= DAY_S:
            since = time.strftime("%Y-%m-%d", time.localtime(by.since))
        ended = ", ended" if by and not by.process.alive else ""
        started = f"{by.command} (pid {by.pid}{ended})" if by else "-"
        lines.append(
            (
                one.name,
                one.state,
                str(one.nodes),
                str(one.pid or "-"),
                since,
                started,
                by.folder if by else "-",
                str(one.folder),
            )
        )
    return lines


def as_json(one: Listed) -> dict[str, Any]:
    """The same for programs; times in seconds of the epoch."""
    by = one.starter
    starter = by and {
        "command": by.command,
        "pid": by.pid,
        "running": by.process.alive,
        "since": by.since,
        "folder": by.folder,
    }
    return {
        "name": one.name,
        "state": one.state,
        "nodes": one.nodes,
        "pid": one.pid,
        "stateFolder": str(one.folder),
        "startedBy": starter,
    }


def down_all() -> list[str]:
    """End every cluster of the state folder, and what is left of others; their names.

    Goes on when one cannot be ended, and raises LocalError with all of these at the end.
    """
    require_root_linux()
    ended: list[str] = []
    wrong: list[str] = []
    for folder in record.nodes():
        try:
            Node(folder.name).down()
            ended.append(folder.name)
        except (LocalError, OSError) as error:
            wrong.append(f"{folder.name}: {error}")
    for stray, folder in strays():
        stray.signal(signal.SIGKILL)
        if not stray.wait(END_TIMEOUT):
            wrong.append(f"process {stray.pid} of {folder} does not end")
        ended.append(f"{folder.name} (pid {stray.pid}, without a folder)")
    buildah.release_abandoned()
    with contextlib.suppress(OSError):
        state_dir().rmdir()
    if wrong:
        raise LocalError("; ".join(wrong))
    return ended


def strays() -> Iterator[tuple[Process, Path]]:
    """First processes of nodes of this state folder whose own folder is gone."""
    top = state_dir()
    for one in Path("/proc").glob("[0-9]*"):
        try:
            words = (one / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if INIT.encode() not in words:
            continue
        folder = Path(os.fsdecode(words[words.index(INIT.encode()) + 1]))
        found = Process.of(int(one.name))
        if folder.is_relative_to(top) and not folder.exists() and found is not None:
            yield found, folder
