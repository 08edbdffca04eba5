"""Ends the reservations in which a check runs again on nodes that it drained."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from penstock.api.nebius.active_check import ActiveCheck
from penstock.catalog.event import Event
from penstock.controllers.nebius.checks.policy import policy
from penstock.controllers.runtime.report import Events
from penstock.decide.check.out_nodes import node_state
from penstock.decide.check.recheck import Ending, ending, rechecks
from penstock.decide.check.results import Result
from penstock.decide.drain.check_drain import NodeState
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import NotFoundError, SlurmError
from penstock.slurm.versions import RESERVATION_CALLS_SINCE


class Rechecks:
    """Those of all ActiveChecks."""

    def __init__(self, events: Events) -> None:
        self._events = events

    async def end(self, check: ActiveCheck, client: Slurmrestd, results: Sequence[Result]) -> bool:
        """End all reservations of a check; whether there was one.

        Raises SlurmError, once all are ended that can be: one may have a running job.
        """
        found = {one.name: one.start_time.value() or 0 for one in await client.reservations()}
        own = rechecks(check.metadata.name, found)
        failure: SlurmError | None = None
        for one in own:
            try:
                state = await _state_of(client, one.node)
                await self._end(check, client, ending(one, state, policy(check), results))
            except SlurmError as error:
                failure = error
        if failure is not None:
            raise failure
        return bool(own)

    async def _end(self, check: ActiveCheck, client: Slurmrestd, one: Ending) -> None:
        """The drain comes first: between the two calls no job of a user may start."""
        node = one.recheck.node
        if one.drain:
            await client.update_node(node, state=["DRAIN"], reason=one.drain)
            words = f"Drained Slurm node {node} again: {one.drain}"
            self._events.warning(check, Event.CHECK_DRAINED, words, "Drain")
        if client.lacks(RESERVATION_CALLS_SINCE):
            # slurmctld ends it by itself: images/entrypoints/jail_check.py created it so.
            return
        with contextlib.suppress(NotFoundError):
            await client.delete_reservation(one.recheck.name)
        if one.in_service:
            words = f"Slurm node {node} is in service again: the check completed on it"
            self._events.normal(check, Event.CHECK_UNDRAINED, words, "Undrain")


async def _state_of(client: Slurmrestd, node: str) -> NodeState:
    """The state of a node; without a record it has no jobs."""
    try:
        return node_state(await client.node(node))
    except NotFoundError:
        return NodeState(is_drained=True)
