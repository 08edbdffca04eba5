"""Carries out the reaction of one Slurm node to the result of a check."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.api.nebius.active_check import ActiveCheck
from penstock.catalog.event import Event
from penstock.controllers.runtime.report import Events
from penstock.decide.check.reaction import NodeResult, next_change
from penstock.decide.drain.check_drain import Drain, NodeState
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import NotFoundError
from penstock.slurm.state import Node

_OUT = frozenset({"DOWN", "FAIL", "FAILING", "ERROR"})
"""States with a reason of somebody, which a drain would replace."""


class NodeReactions:
    """Those of all ActiveChecks."""

    def __init__(self, events: Events) -> None:
        self._events = events

    async def react(
        self,
        check: ActiveCheck,
        client: Slurmrestd,
        name: str,
        own: NodeResult,
        others: Callable[[str], Sequence[NodeResult]],
    ) -> bool:
        """Query the node and change it; whether it was changed. Raises SlurmError.

        A node without a record has nothing to drain. `others` returns the last results of other
        checks on a node: only those of a drained one matter, and reading them takes long.
        """
        try:
            state = node_state(await client.node(name))
            change = next_change(state, own, others(name) if state.is_drained else ())
            if change is None:
                return False
            if isinstance(change, Drain):
                await client.update_node(name, state=["DRAIN"], reason=change.reason)
                words = f"Drained Slurm node {name}: {change.reason}"
                self._events.warning(check, Event.CHECK_DRAINED, words, "Drain")
            else:
                await client.update_node(name, state=["UNDRAIN"])
                words = f"Undrained Slurm node {name}: job {own.result.job} completed on it"
                self._events.normal(check, Event.CHECK_UNDRAINED, words, "Undrain")
        except NotFoundError:
            return False
        return True


def node_state(node: Node) -> NodeState:
    """A node as policies read it: one with somebody's reason counts as drained."""
    is_out = bool(node.state & _OUT and node.reason)
    return NodeState(node.drain or is_out, node.reason, node.comment)
