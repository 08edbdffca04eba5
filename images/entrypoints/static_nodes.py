"""Nodes that slurm.conf names, as that of soperator 5.0 does, which stays in force after a switch.

`slurmd -Z` ends with "Duplicated NodeName" for such a node: it has to start as a static one.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

CONF = Path("/etc/slurm/slurm.conf")
_INCLUDE = re.compile(r"^\s*include\s+(\S+)", re.IGNORECASE | re.MULTILINE)
_NODES = re.compile(r"^\s*NodeName\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)
_MOST_FILES = 16


def is_static(name: str, conf: Path = CONF) -> bool:
    """Return whether slurm.conf, or a file that it includes, names the node."""
    return any(name in _expanded(hosts) for hosts in _named(conf))


def static_options(options: list[str]) -> list[str]:
    """Return slurmd's options for a node that slurm.conf names.

    Its parameters are in slurm.conf. `-b` ends a power state that slurmctld has of a State=CLOUD
    node whose pod is another one.
    """
    rest: list[str] = []
    values = iter(options)
    for option in values:
        if option == "--conf":
            next(values, "")
        elif option != "-Z" and not option.startswith("--conf="):
            rest.append(option)
    return [*rest, "-b"]


def node_name(options: list[str]) -> str:
    """Return the name of the node in slurmd's options; empty without one."""
    return next((b for a, b in pairwise(options) if a == "-N"), "")


def _named(conf: Path) -> Iterator[str]:
    waiting, seen = [conf], set[Path]()
    while waiting and len(seen) < _MOST_FILES:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        yield from _NODES.findall(text)
        waiting += [conf.parent / name for name in _INCLUDE.findall(text)]


def _expanded(hosts: str) -> list[str]:
    command = ["scontrol", "show", "hostnames", hosts]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.split()
