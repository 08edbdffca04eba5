"""Creates, changes and deletes the maintenance reservations of worker sets, as planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.catalog.event import Event
from penstock.controllers.observed.slurm_endpoints import SLURM_USER
from penstock.controllers.runtime.event_batch import EventBatch
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.decide.action import DeleteReservation, RejectedReservation, SetReservation
from penstock.kube import Cache
from penstock.kube.client.clock import Clock
from penstock.kube.runtime.state import StateByUid
from penstock.model.worker_set import WorkerSet
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.rest.reservation import WantedReservation, reserved

AGAIN_S = 30.0
"""Pause before a reservation that slurmctld rejected is requested again."""


@dataclass(slots=True)
class _State:
    rejected: RejectedReservation | None = None


class Reservations:
    """Those of all worker sets of one kind, and how slurmctld rejected them."""

    def __init__(self, objects: Cache[Any], clock: Clock) -> None:
        self._clock = clock
        self._states = StateByUid(objects, _State)

    def rejected(self, workers: WorkerSet) -> RejectedReservation | None:
        """The last reservation of a worker set, if slurmctld rejected it."""
        return self._states.of(workers).rejected

    async def apply(
        self,
        workers: WorkerSet,
        connection: SlurmConnection,
        client: Slurmrestd,
        actions: Sequence[SetReservation | DeleteReservation],
        batch: EventBatch,
    ) -> list[bool]:
        """Do them; whether each was done."""
        done = [await self._one(workers, client, one, batch) for one in actions]
        if actions:
            # The next plan must read the state after these changes.
            connection.mirror.poll_soon()
            await connection.reservations.poll()
        return done

    async def _one(
        self,
        workers: WorkerSet,
        client: Slurmrestd,
        one: SetReservation | DeleteReservation,
        batch: EventBatch,
    ) -> bool:
        state = self._states.of(workers)
        try:
            if isinstance(one, SetReservation):
                await client.update_reservation(_wanted(one))
            elif one.name in {found.name for found in await client.reservations()}:
                await client.delete_reservation(one.name)
        except SlurmError as error:
            if error.is_rejection:
                again = self._clock.time() + AGAIN_S
                state.rejected = RejectedReservation(str(error), again)
                batch.warning(
                    Event.SLURM_REFUSED, f"Reservation {one.name}: {error}", type(one).__name__
                )
            return False
        state.rejected = None
        batch.normal(one.why.reason, one.why.message, type(one).__name__)
        return True


def _wanted(one: SetReservation) -> WantedReservation:
    new = one.start is not None
    return WantedReservation(
        one.name,
        start_time=one.start,
        end_time=one.end,
        nodes=one.nodes,
        users=(SLURM_USER,) if new else None,
        flags=one.flags,
    )


async def reserved_by_others(client: Slurmrestd, ours: str) -> frozenset[str]:
    """The nodes that reservations name, but for the one of that name (`ours`).

    Raises SlurmError.
    """
    return reserved(one for one in await client.reservations() if one.name != ours)
