"""Condition for a failed connection to an external daemon, with its cause and the next step.

A name, a port and a key can each be wrong; Slurm's clients report the same error for the first two.
"""

from __future__ import annotations

import enum

from penstock.api.kubernetes.conditions import Finding
from penstock.catalog.reasons.connection import ConnectionReason

PATIENCE_S = 3.0
"""After so many seconds without an answer a port counts as silent."""


class End(enum.Enum):
    """How the attempt ended."""

    OPEN = "open"
    NAMELESS = "nameless"
    REFUSED = "refused"
    SILENT = "silent"
    NO_ROUTE = "no route"


_CLOSED = {
    End.REFUSED: (
        "refuses connections: nothing listens on that port there, or a firewall rejects them"
    ),
    End.SILENT: (
        f"does not answer within {PATIENCE_S:g} s: it is down, a firewall drops the packets, or "
        "its answers have no route back"
    ),
    End.NO_ROUTE: "cannot be reached: there is no route to it",
}


def closed(end: End, daemon: str, host: str, port: int) -> Finding | None:
    """Return the condition of a closed connection to `daemon` at `host:port`; None for an open one.

    A closed port may open by itself; a name that does not resolve needs a correction.
    """
    if end is End.OPEN:
        return None
    if end is End.NAMELESS:
        message = (
            f"spec.externalConfig.host: the name {host} of {daemon} does not resolve in this "
            "cluster: correct it, or have the cluster's DNS know it (a Service without a selector, "
            "for example)"
        )
        return Finding(False, ConnectionReason.NAME_NOT_RESOLVED, message)
    message = f"{daemon} at {host}:{port} {_CLOSED[end]} (asked from Penstock's own pod)"
    return Finding(None, ConnectionReason.PORT_UNREACHABLE, message)
