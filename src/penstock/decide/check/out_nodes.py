"""Slurm nodes that checks have taken out of service: by a drain, or by a reservation."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.decide.check.check_share import is_check_drain
from penstock.decide.check.reaction import is_of_check
from penstock.decide.check.recheck import PREFIX
from penstock.decide.drain.check_drain import NodeState
from penstock.decide.observed.check_comment import check_comment
from penstock.slurm.reservation import Reservation
from penstock.slurm.state import Node

_OUT = frozenset({"DOWN", "FAIL", "FAILING", "ERROR"})
"""States with a reason of somebody, which a drain would replace."""
RESERVED = frozenset({"MAINTENANCE", "RESERVED"})
"""States of nodes in a reservation."""


def node_state(node: Node) -> NodeState:
    """A node as policies read it: one with somebody's reason counts as drained."""
    is_out = bool(node.state & _OUT and node.reason)
    comment = check_comment(node.comment)
    return NodeState(node.drain or is_out, node.reason, comment)


def out_by_checks(nodes: Iterable[Node], reservations: Iterable[Reservation] = ()) -> set[str]:
    """Names of the nodes that checks have drained or reserved; those of users do not count."""
    found: set[str] = set()
    for node in nodes:
        state = node_state(node)
        if state.is_drained and is_check_drain(state.reason):
            found.add(node.name)
    for one in reservations:
        found |= _reserved(one)
    return found


def _reserved(one: Reservation) -> frozenset[str]:
    """The node of a reservation by a check; empty for any other reservation."""
    if one.name.startswith(PREFIX):
        return one.nodes
    if len(one.nodes) != 1:
        return frozenset()
    (node,) = one.nodes
    is_named = one.name.endswith(f"-{node}")
    return one.nodes if is_named and is_of_check(one.nodes, one.flags, node) else frozenset()
