"""Arguments and variables of `rebooter`, as the DaemonSets of soperator pass them."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.controllers.runtime.arguments import LEVELS

COMMAND: Final = ("systemctl", "reboot")
BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
HOST_ROOT: Final = "/proc/1/root"


@dataclass(frozen=True, slots=True)
class Arguments:
    """Settings of the process. The command runs with the files of the folder `root`."""

    node: str
    command: tuple[str, ...]
    boot_id: Path
    root: str
    log_level: str


def parse(
    arguments: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    *,
    program: str = "rebooter",
) -> Arguments:
    """Parse the command line.

    Exits with argparse's message (status 2) for arguments that are unknown or do not parse.
    """
    parser = argparse.ArgumentParser(
        prog=program,
        description="Reboots the node in REBOOTER_NODE_NAME once the operator allows it.",
        epilog="REBOOTER_COMMAND is the command, run in the root of PID 1; without it: "
        f"{shlex.join(COMMAND)}.",
        allow_abbrev=False,
    )
    # With one hyphen too, as programs in Go have them.
    parser.add_argument(
        "-log-level",
        "--log-level",
        default="info",
        choices=(*LEVELS, "warn"),
        help="least level of log lines (info)",
    )
    parser.add_argument(
        "-log-format",
        "--log-format",
        default="json",
        choices=("", "json", "plain", "text"),
        help="only JSON is written",
    )
    given = parser.parse_args(arguments)
    node = environment.get("REBOOTER_NODE_NAME", "")
    if not node:
        parser.error("REBOOTER_NODE_NAME is required: the name of the pod's Kubernetes node")
    method = environment.get("REBOOTER_EVICTION_METHOD", "evict")
    if method != "evict":
        parser.error(f"REBOOTER_EVICTION_METHOD: {method!r} is unknown, write evict")
    try:
        command = tuple(shlex.split(environment.get("REBOOTER_COMMAND", "")))
    except ValueError as error:
        parser.error(f"REBOOTER_COMMAND: {error}")
    return Arguments(
        node=node,
        command=command or COMMAND,
        boot_id=Path(BOOT_ID),
        root=HOST_ROOT,
        log_level="warning" if given.log_level == "warn" else given.log_level,
    )
