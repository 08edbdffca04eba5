"""Slurm nodes that slurm.conf of the original names one by one.

slurmctld forgets such a node, and ends its jobs, when it starts with a slurm.conf without its line:
only nodes that registered themselves are in its state. Source: slurm.conf(5), NODE CONFIGURATION.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.slurm import hostlist
from penstock.slurm.conf.includes import resolved


def lost_nodes(
    before: Mapping[str, str], after: Mapping[str, str], nodes: Iterable[str]
) -> tuple[str, ...]:
    """Which of these nodes have a NodeName line in the files `before`, and none `after`."""
    old, new = _named(before), _named(after)
    return tuple(node for node in nodes if _is_in(old, node) and not _is_in(new, node))


def _named(files: Mapping[str, str]) -> list[str]:
    """The host lists of NodeName lines."""
    found: list[str] = []
    for line in resolved(files).splitlines():
        key, _, rest = line.strip().partition("=")
        if key.lower() == "nodename" and rest:
            found.append(rest.split()[0])
    return found


def _is_in(lists: Iterable[str], node: str) -> bool:
    return any(_contains(one, node) for one in lists)


def _contains(expression: str, node: str) -> bool:
    try:
        return hostlist.contains(expression, node)
    except ValueError:
        return False
