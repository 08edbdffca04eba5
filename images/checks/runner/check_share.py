"""How many nodes of a cluster checks may have drained at a time, and which of them.

One policy for all checks: the quick ones in a worker, which import it from their image's folder,
and those of the operator. So this module needs nothing beside the standard library.

A check that is wrong fails on all nodes at once. So checks together drain no more than a share of
the cluster; a node above it stays in service, and is drained once another one is repaired.

1. A node counts if its drain has a published prefix of checks or the form of their owner mark, or
   if a check has it in a reservation. A drain of a user or of an update does not count.
2. A check drains a node only while fewer count than may. A node that counts already takes no more
   room.
3. Workers drain at the same time, and each sees the others too late. So a worker queries slurmctld
   again, once all drains of the same second are visible. Nodes are then in the order of their
   drains, those of the operator first: one that is above the limit takes its own drain back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

DEFAULT = "10%"
LINE = "# Checks may drain: "
"""Begin of the line of slurm.conf by which workers find the share; none with the default one."""
VISIBLE_SECONDS = 1.1
"""After so long all drains of one second are visible. Source: slurmctld has whole seconds."""
PREFIXES = ("[node_problem]", "[user_problem]", "[hardware_problem]")
OF_OPERATOR = " [slurm_job]"
"""End of reasons that the operator sets."""
_MARK = re.compile(r".+ \[(?:prolog|epilog|hc_program|slurm_job)\]", re.DOTALL)
_PERCENT = re.compile(r"([1-9][0-9]?|100)%")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True)
class OutNode:
    """A node that a check has drained. `since` is in seconds of slurmctld's clock."""

    name: str
    reason: str
    since: float


def is_check_drain(reason: str) -> bool:
    """Whether a drain with this reason is one of a check."""
    return reason.startswith(PREFIXES) or _MARK.fullmatch(reason) is not None


def is_share(text: str) -> bool:
    """Whether a text is a share: a number of nodes from 1, or a whole percentage up to 100%."""
    return _PERCENT.fullmatch(text) is not None or _NUMBER.fullmatch(text) is not None


def limit(text: str, nodes: int) -> int:
    """How many of so many nodes checks may drain: at least one; percentages are rounded down.

    A text that is no share is the default.
    """
    share = text if is_share(text) else DEFAULT
    if (found := _PERCENT.fullmatch(share)) is None:
        return int(share)
    return max(1, nodes * int(found[1]) // 100)


def drainable(most: int, out: Collection[str], wanted: Iterable[str]) -> tuple[str, ...]:
    """The wanted nodes that checks may drain now: those that count already, and the first others.

    `out` are the names of the nodes that checks have drained or reserved.
    """
    room = most - len(out)
    found: list[str] = []
    for name in dict.fromkeys(wanted):
        if name not in out:
            if room <= 0:
                continue
            room -= 1
        found.append(name)
    return tuple(found)


def keeps_drain(most: int, own: OutNode, out: Iterable[OutNode]) -> bool:
    """Whether a worker keeps the drain that it has just set, by the nodes that count now."""
    before = {
        one.name
        for one in out
        if one.name != own.name
        and (one.reason.endswith(OF_OPERATOR) or (one.since, one.name) < (own.since, own.name))
    }
    return len(before) < most


def share_in(conf: str) -> str:
    """The share in a text of slurm.conf; empty without a line of it."""
    for line in conf.splitlines():
        if line.startswith(LINE):
            return line[len(LINE) :].strip()
    return ""


def postponed_words(most: int, out: int) -> str:
    """Why a node is not drained."""
    return f"checks have drained {out} Slurm nodes, and at most {most} may be"
