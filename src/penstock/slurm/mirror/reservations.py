"""Mirror of slurmctld's reservations: polled only while a controller needs them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from penstock.slurm import hostlist
from penstock.slurm.known import Fact, Known, Unknown
from penstock.slurm.mirror.polled_mirror import PolledMirror
from penstock.slurm.mirror.snapshot import NOT_ASKED
from penstock.slurm.reservation import Reservation
from penstock.slurm.rest import reservation as wire
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError

PACE_S = 10.0
"""Seconds between two questions; one call each."""
STALE_S = 30.0

Reservations = Mapping[str, Reservation]


class ReservationMirror(PolledMirror):
    """The reservations of one cluster, used from one event loop. `clock` gives monotonic seconds.

    `changed` is called when an answer or a failure differs from the one before.
    """

    def __init__(
        self, changed: Callable[[], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock=clock)
        self._changed = changed
        self._fact: Fact[Reservations] = Unknown(NOT_ASKED)
        self._has_answer = False
        self._needed: set[str] = set()

    @property
    def records(self) -> Fact[Reservations]:
        """The reservations by name; `as_of` is when they were asked for."""
        return self._recent(self._fact, STALE_S)

    @property
    def has_answered(self) -> bool:
        """Whether there was an answer, or there is no slurmrestd to ask."""
        return self._client is None or self._has_answer

    def need(self, who: str, needs: bool) -> None:
        """Register or unregister the need of `who`; without any, slurmctld is not polled."""
        if needs == (who in self._needed):
            return
        if needs:
            self._needed.add(who)
        else:
            self._needed.discard(who)
        if not self._needed:
            self._forget(NOT_ASKED)
        self._requested.set()

    async def poll(self) -> None:
        """Poll now, after a change; answers to older requests are dropped."""
        client, asked_at, before = self._client, self._clock(), self.records
        if client is None:
            return
        found: Fact[Reservations]
        try:
            table = {one.name: read_reservation(one) for one in await client.reservations()}
            found = Known(MappingProxyType(table), asked_at)
        except (SlurmError, hostlist.HostListError) as error:
            found = Unknown(str(error))
        late = isinstance(self._fact, Known) and self._fact.as_of > asked_at
        if client is not self._client or late or not self._needed:
            return
        self._fact, self._has_answer = found, True
        if not _alike(before, found):
            self._changed()

    def _forget(self, why: str) -> None:
        self._fact, self._has_answer = Unknown(why), False

    async def _poll(self, client: Slurmrestd) -> float | None:
        if not self._needed:
            return None
        await self.poll()
        return PACE_S


def read_reservation(one: wire.Reservation) -> Reservation:
    """The model of a record. Raises HostListError."""
    return Reservation(
        one.name,
        one.start_time.value() or 0,
        one.end_time.value() or 0,
        frozenset(hostlist.expand(one.node_list)),
        frozenset(one.flags or ()),
    )


def _alike(one: Fact[Reservations], other: Fact[Reservations]) -> bool:
    if isinstance(one, Known) and isinstance(other, Known):
        return one.value == other.value
    return one == other
