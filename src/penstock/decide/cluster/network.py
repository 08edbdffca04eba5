"""Connections that the daemons of a cluster need, and the result of testing each.

Slurm's daemons connect in both directions, and a connection that is closed in one direction shows
only when a job starts. A pod can test its connections; an external daemon cannot be tested from
here. The node state in slurmctld shows whether it reaches an external slurmd. Source of the pairs:
slurm.conf(5), SlurmctldPort, SlurmdPort, AccountingStoragePort; srun(1), which connects to slurmd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.base.table import aligned

WAYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("slurmctld", ("slurmd", "login", "slurmrestd", "slurmdbd")),
    ("slurmd", ("slurmctld", "slurmd", "login")),
    ("slurmdbd", ("slurmctld", "slurmrestd", "login")),
    ("slurmrestd", ("operator",)),
)
"""Each daemon with those that connect to it."""
OPEN = "yes"
RESULTS = {
    "open": OPEN,
    "nameless": "NO: the name does not resolve",
    "refused": "NO: connection refused (nothing listens there, or a firewall rejects it)",
    "silent": "NO: no answer (a firewall, a missing route, or a computer that is down)",
    "noroute": "NO: no route",
}
"""Result of a test, as the table shows it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a daemon runs. It is external without `pod`, and no server without `host`."""

    role: str
    name: str
    pod: str = ""
    container: str = ""
    host: str = ""
    port: int = 0

    @property
    def address(self) -> str:
        """Host and port as one word."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node as `sinfo` shows it."""

    name: str
    address: str
    state: str

    @property
    def responds(self) -> bool:
        """Whether slurmctld reaches its slurmd. Source: sinfo(1), NODE STATE CODES."""
        return not self.state.endswith("*") and not self.state.lower().startswith(
            ("unknown", "down")
        )


@dataclass(frozen=True, slots=True)
class Way:
    """One row: who has to reach what, and whether it does."""

    source: Place
    target: Place
    found: str

    @property
    def closed(self) -> bool:
        """Whether a test showed that it does not."""
        return self.found.startswith("NO")


def pairs(places: Sequence[Place]) -> list[tuple[Place, Place]]:
    """All ways that have to be open between these places, in the order of `WAYS`."""
    found: list[tuple[Place, Place]] = []
    for role, clients in WAYS:
        targets = [one for one in places if one.role == role and one.host]
        for client in clients:
            sources = [one for one in places if one.role == client]
            found += [(s, t) for s in sources for t in targets if s != t]
    return found


def table(
    places: Sequence[Place],
    tried: Mapping[tuple[str, str], str],
    nodes: Mapping[str, SlurmNode],
) -> list[Way]:
    """Return the connections with their results.

    `tried` has a key of `RESULTS`, or the reason why there was no test, by pod and address.
    """
    return [
        Way(source, target, _found(source, target, tried, nodes))
        for source, target in pairs(places)
    ]


def _found(
    source: Place,
    target: Place,
    tried: Mapping[tuple[str, str], str],
    nodes: Mapping[str, SlurmNode],
) -> str:
    if source.pod:
        result = tried.get((source.pod, target.address), "the test gave no result")
        return RESULTS.get(result, f"not known: {result}")
    if {source.role, target.role} == {"slurmctld", "slurmd"}:
        node = nodes.get(source.name if source.role == "slurmd" else target.name)
        if node is not None and node.responds:
            return f"{OPEN}, slurmctld reports {node.state}"
        if node is not None:
            return f"NO: slurmctld reports {node.name} as {node.state}"
    return f"not known: try it there: nc -vz -w 3 {target.host} {target.port}"


def lines(ways: Sequence[Way]) -> list[str]:
    """The table as text."""
    rows = [("FROM", "TO", "ADDRESS", "REACHABLE")]
    rows += [
        (_named(one.source), _named(one.target), one.target.address, one.found) for one in ways
    ]
    return aligned(rows)


def _named(place: Place) -> str:
    where = "" if place.pod else " (outside)"
    return f"{place.role} {place.name}{where}" if place.name else f"{place.role}{where}"
