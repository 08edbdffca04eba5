"""Start a daemon as soon as one of its servers takes connections: `reach.py COMMAND ARGUMENTS`.

slurmd and sackd fetch their configuration from slurmctld. When that is not there yet they try
again only every ten seconds, and a cluster that starts all at once would wait for nothing.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence
from itertools import pairwise

PAUSE_SECONDS = 0.2
TELL_SECONDS = 10.0
DEFAULT_PORT = 6817


def servers(options: Sequence[str]) -> list[tuple[str, int]]:
    """Return host and port of each `--conf-server`; none when the option is not there."""
    given = [value for option, value in pairwise(options) if option == "--conf-server"]
    given += [o.partition("=")[2] for o in options if o.startswith("--conf-server=")]
    found: list[tuple[str, int]] = []
    for word in ",".join(given).split(","):
        host, colon, port = word.rpartition(":")
        if not colon:
            host, port = word, ""
        if host:
            found.append((host.strip("[]"), int(port) if port.isdecimal() else DEFAULT_PORT))
    return found


def reachable(wanted: Sequence[tuple[str, int]]) -> bool:
    """Tell whether one of them takes a connection now."""
    for address in wanted:
        try:
            with socket.create_connection(address, timeout=2):
                return True
        except OSError:
            continue
    return False


def wait(wanted: Sequence[tuple[str, int]]) -> None:
    """Wait without end, and say so now and then."""
    tell_at = time.monotonic() + TELL_SECONDS
    while wanted and not reachable(wanted):
        if time.monotonic() >= tell_at:
            names = ", ".join(f"{host}:{port}" for host, port in wanted)
            print(f"waiting for slurmctld at {names}", file=sys.stderr, flush=True)
            tell_at += TELL_SECONDS
        time.sleep(PAUSE_SECONDS)


def before(argv: Sequence[str]) -> list[str]:
    """Return the command that waits for argv's servers and then becomes argv."""
    if not servers(argv):
        return list(argv)
    return [sys.executable, "-B", __file__, *argv]


if __name__ == "__main__":
    wait(servers(sys.argv[1:]))
    os.execv(sys.argv[1], sys.argv[1:])
