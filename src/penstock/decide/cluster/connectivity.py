"""Condition for a failed connection to an external daemon, with its cause and the next step.

A name, a port and a key can each be wrong; Slurm's clients report the same error for the first two.
"""

from __future__ import annotations

import enum
import ipaddress
from collections.abc import Collection

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
    INSIDE = "inside"
    """No connection was tried: the address leads nowhere outside."""


def leads_inside(address: str, own: Collection[str]) -> bool:
    """Whether no external daemon can have an address.

    Loopback and link-local addresses, such as those of metadata services of clouds, and those of
    the API server and of the operator itself. Private networks are outside.
    """
    found = _parsed(address)
    if found is None or found in map(_parsed, own):
        return True
    return found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast


def is_probed(address: str, services: Collection[str]) -> bool:
    """Whether a connection is tried to diagnose one that fails.

    None to Services of other namespaces: who writes the name may be unable to reach them.
    """
    return _parsed(address) not in map(_parsed, services)


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


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
    if end is End.INSIDE:
        message = (
            f"spec.externalConfig.host: {host} leads to an address inside this cluster or to a "
            f"loopback address, where no {daemon} can be. Write its name or address outside"
        )
        return Finding(False, ConnectionReason.NAME_NOT_RESOLVED, message)
    message = f"{daemon} at {host}:{port} {_CLOSED[end]}"
    return Finding(None, ConnectionReason.PORT_UNREACHABLE, message)
