"""Whether every slurmd has restarted since slurmctld was asked to reconfigure.

A slurmd restarts itself when slurmctld reconfigures, and reports the time in its node record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.slurm.state import Node

UNREACHABLE = frozenset(
    {"NOT_RESPONDING", "POWERING_DOWN", "POWERED_DOWN", "POWERING_UP", "FUTURE", "UNKNOWN"}
)
"""States of a node that may have no slurmd that restarts."""


def start_times(nodes: Iterable[Node]) -> dict[str, int]:
    """Start of each slurmd that can restart, in Unix seconds, by the name of its node."""
    return {
        one.name: one.slurmd_start_time
        for one in nodes
        if one.slurmd_start_time and not one.state & UNREACHABLE
    }


def unfinished(before: Mapping[str, int], nodes: Iterable[Node]) -> list[str]:
    """Nodes whose slurmd has not restarted since `before`, sorted.

    A node that is gone or does not respond any more reads its files when it starts again.
    """
    now = start_times(nodes)
    return sorted(name for name, start in before.items() if name in now and now[name] <= start)


def starts_now(before: Mapping[str, int], now: float) -> bool:
    """Whether a slurmd started in this very second, so that a restart would show the same time."""
    return any(start >= int(now) for start in before.values())
