"""Carries out the reactions of one Slurm node to the result of a check."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from penstock.api.nebius.active_check import ActiveCheck
from penstock.catalog.event import Event
from penstock.controllers.nebius.checks.drain_room import DrainRoom
from penstock.controllers.nebius.checks.reservations import NodeReservations
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.decide.check.out_nodes import node_state
from penstock.decide.check.reaction import NodeResult, next_change, next_comment
from penstock.decide.drain.check_drain import Drain, NodeState
from penstock.decide.observed.check_comment import with_check_comment
from penstock.kube.client.clock import Clock
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import NotFoundError
from penstock.slurm.state import Node


class NodeReactions:
    """Those of all ActiveChecks."""

    def __init__(self, events: Events, clock: Clock) -> None:
        self._events = events
        self._reservations = NodeReservations(events, clock)

    async def react(
        self,
        check: ActiveCheck,
        client: Slurmrestd,
        name: str,
        own: NodeResult,
        others: Callable[[str], Sequence[NodeResult]],
        room: DrainRoom,
        link: SlurmConnection,
    ) -> bool:
        """Query the node and change it; whether it was changed. Raises SlurmError.

        A node without a record has nothing to change. One for which there is no room is commented
        only. `others` returns the last results of other checks on a node: only those of a drained
        or commented one matter, and reading them takes long.
        """
        try:
            node = await client.node(name)
            state = node_state(node)
            last = others(name) if state.is_drained or state.comment else ()
            drained = await self._drain(check, client, name, state, own, last, room, link.states)
            commented = await self._comment(check, client, node, own, last, link.comments)
            reserved = await self._reservations.react(check, client, name, own, room)
        except NotFoundError:
            return False
        return drained or commented or reserved

    async def _drain(
        self,
        check: ActiveCheck,
        client: Slurmrestd,
        name: str,
        state: NodeState,
        own: NodeResult,
        others: Sequence[NodeResult],
        room: DrainRoom,
        states: asyncio.Lock,
    ) -> bool:
        change = next_change(state, own, others)
        if change is None:
            return False
        if isinstance(change, Drain) and not state.is_drained and not await room.admits(name):
            return False
        async with states:
            # Others may have drained it while this one waited for its turn.
            change = next_change(node_state(await client.node(name)), own, others)
            if isinstance(change, Drain):
                await client.update_node(name, state=["DRAIN"], reason=change.reason)
            elif change is not None:
                await client.update_node(name, state=["UNDRAIN"])
        if change is None:
            return False
        if isinstance(change, Drain):
            words = f"Drained Slurm node {name}: {change.reason}"
            self._events.warning(check, Event.CHECK_DRAINED, words, "Drain")
        else:
            words = f"Undrained Slurm node {name}: job {own.result.job} completed on it"
            self._events.normal(check, Event.CHECK_UNDRAINED, words, "Undrain")
        return True

    async def _comment(
        self,
        check: ActiveCheck,
        client: Slurmrestd,
        node: Node,
        own: NodeResult,
        others: Sequence[NodeResult],
        comments: asyncio.Lock,
    ) -> bool:
        change = next_comment(node_state(node), own, others)
        if change is None:
            return False
        async with comments:
            current = (await client.node(node.name)).comment
            text = with_check_comment(current, change.text)
            await client.update_node(node.name, comment=text)
        words = f"Comment of Slurm node {node.name}: {change.text or 'removed'}"
        self._events.normal(check, Event.CHECK_COMMENTED, words, "Comment")
        return True
