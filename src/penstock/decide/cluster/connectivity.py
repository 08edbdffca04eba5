"""What a connection to a daemon outside of Kubernetes came to, in words one can act on.

A name, a port and a key can each be wrong, and Slurm's own clients say the same of the first two.
"""

from __future__ import annotations

import enum

from penstock.api.kubernetes.conditions import Finding

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
        f"does not answer within {PATIENCE_S:g} s: the host is down, a firewall drops what is sent "
        "there, or its answers find no way back"
    ),
    End.NO_ROUTE: "cannot be reached: there is no route to it",
}


def closed(end: End, daemon: str, host: str, port: int) -> Finding | None:
    """What is wrong with the way to `daemon` at `host:port`; None when it is open.

    A port that nobody serves may be about to be served; a name has to be corrected by somebody.
    """
    if end is End.OPEN:
        return None
    if end is End.NAMELESS:
        told = (
            f"spec.externalConfig.host: the name {host} of {daemon} does not resolve in this "
            "cluster: correct it, or have the cluster's DNS know it (a Service without a selector, "
            "for example)"
        )
        return Finding(False, "NameNotResolved", told)
    told = f"{daemon} at {host}:{port} {_CLOSED[end]} (asked from Penstock's own pod)"
    return Finding(None, "PortUnreachable", told)
