"""Reserves a Slurm node after the result of a check, or ends that."""

from __future__ import annotations

import contextlib
from typing import Final

from penstock.api.nebius.active_check import ActiveCheck
from penstock.catalog.event import Event
from penstock.controllers.nebius.checks.drain_room import DrainRoom
from penstock.controllers.runtime.report import Events
from penstock.decide.check.reaction import (
    RESERVATION_FLAGS,
    NodeResult,
    is_of_check,
    reservation_name,
)
from penstock.kube.client.clock import Clock
from penstock.slurm import hostlist
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import NotFoundError, SlurmError, UnreachableError
from penstock.slurm.rest.reservation import Reservation, WantedReservation
from penstock.slurm.versions import RESERVATION_CALLS_SINCE

_USERS: Final = (("root", "soperatorchecks"), ("root",))
"""Users of the reservation: Slurm rejects one that it does not have."""
_MINUTES: Final = 365 * 24 * 60
"""Duration of the reservation. Source: slurmctld reads an infinite one as one year."""


class NodeReservations:
    """Those of all ActiveChecks."""

    def __init__(self, events: Events, clock: Clock) -> None:
        self._events = events
        self._clock = clock

    async def react(
        self,
        check: ActiveCheck,
        client: Slurmrestd,
        node: str,
        own: NodeResult,
        room: DrainRoom,
    ) -> bool:
        """Add and remove the reservation of one node; whether any was. Raises SlurmError.

        A reservation takes the node out of service as a drain does.
        """
        marks = own.policy.marks_for(own.result)
        if not marks.reserve and not marks.release:
            return False
        if why := client.lacks(RESERVATION_CALLS_SINCE):
            if marks.reserve:
                words = f"Slurm node {node} is not reserved: {why}. Use drainSlurmNode"
                self._events.warning(check, Event.CHECK_RESERVED, words, "Reserve")
            return False
        found = {one.name: one for one in await client.reservations()}
        changed = False
        if marks.release and (old := found.get(reservation_name(marks.release, node))):
            changed = await self._release(check, client, node, old)
        name = reservation_name(marks.reserve, node)
        if marks.reserve and name not in found and await room.admits(node):
            await self._reserve(check, client, name, node)
            changed = True
        return changed

    async def _reserve(self, check: ActiveCheck, client: Slurmrestd, name: str, node: str) -> None:
        now = int(self._clock.time())
        for users in _USERS:
            try:
                await client.update_reservation(
                    WantedReservation(
                        name,
                        start_time=now,
                        duration=_MINUTES,
                        nodes=(node,),
                        users=users,
                        flags=RESERVATION_FLAGS,
                    )
                )
                break
            except UnreachableError:
                raise
            except SlurmError:
                # Slurm 26.05 answers with different numbers where it cannot resolve a user.
                if users == _USERS[-1]:
                    raise
        words = f"Reserved Slurm node {node}: reservation {name}"
        self._events.warning(check, Event.CHECK_RESERVED, words, "Reserve")

    async def _release(
        self, check: ActiveCheck, client: Slurmrestd, node: str, old: Reservation
    ) -> bool:
        if not is_of_check(hostlist.expand(old.node_list), old.flags or (), node):
            return False
        with contextlib.suppress(NotFoundError):
            await client.delete_reservation(old.name)
        words = f"Deleted reservation {old.name} of Slurm node {node}"
        self._events.normal(check, Event.CHECK_RELEASED, words, "Release")
        return True
