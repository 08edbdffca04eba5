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
        "refuses connections from the operator's pod: start it, or open the port in the firewall"
    ),
    End.SILENT: (
        "does not answer the operator's pod within "
        f"{PATIENCE_S:g} s: start it, or open firewall and "
        "route in both directions"
    ),
    End.NO_ROUTE: "has no route from the operator's pod: add one",
}


def closed(end: End, daemon: str, host: str, port: int) -> Finding | None:
    """Return the condition of a closed connection to `daemon` at `host:port`; None for an open one.

    A closed port may open by itself; a name that does not resolve needs a correction.
    """
    if end is End.OPEN:
        return None
    if end is End.NAMELESS:
        message = (
            f"spec.externalConfig.host: name {host} of {daemon} does not resolve in this cluster. "
            "Correct it, or add it to the cluster's DNS, such as by a Service without a selector"
        )
        return Finding(False, ConnectionReason.NAME_NOT_RESOLVED, message)
    message = f"{daemon} at {host}:{port} {_CLOSED[end]}"
    return Finding(None, ConnectionReason.PORT_UNREACHABLE, message)
