"""What slurmctld says of its reservations: asked only while somebody needs to know."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from penstock.slurm import hostlist
from penstock.slurm.known import Fact, Known, Unknown
from penstock.slurm.reservation import Reservation
from penstock.slurm.rest import reservation as wire
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.snapshot import LATE, NOT_ASKED

PACE_S = 10.0
"""Seconds between two questions; one call each."""
STALE_S = 30.0

Reservations = Mapping[str, Reservation]


class ReservationMirror:
    """The reservations of one cluster, used from one event loop. `clock` gives monotonic seconds.

    `changed` is called when an answer or a failure says something new.
    """

    def __init__(
        self, changed: Callable[[], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._changed = changed
        self._clock = clock
        self._client: Slurmrestd | None = None
        self._fact: Fact[Reservations] = Unknown(NOT_ASKED)
        self._heard = False
        self._needed: set[str] = set()
        self._wake = asyncio.Event()

    @property
    def records(self) -> Fact[Reservations]:
        """The reservations by name; `as_of` is when they were asked for."""
        found = self._fact
        if isinstance(found, Known) and self._clock() - found.as_of > STALE_S:
            return Unknown(LATE)
        return found

    @property
    def asked(self) -> bool:
        """Whether it has been heard, or why there is nobody to ask."""
        return self._client is None or self._heard

    def need(self, who: str, needs: bool) -> None:
        """Say whether somebody needs to know; as long as nobody does, slurmctld is not asked."""
        if needs == (who in self._needed):
            return
        if needs:
            self._needed.add(who)
        else:
            self._needed.discard(who)
        if not self._needed:
            self._fact, self._heard = Unknown(NOT_ASKED), False
        self._wake.set()

    def endpoint(self, client: Slurmrestd | None, why: str = "") -> None:
        """Ask this slurmrestd from now on; without one nothing is known, because of `why`."""
        if client is not self._client or client is None:
            self._client = client
            self._fact, self._heard = Unknown(why or NOT_ASKED), False
            self._wake.set()

    async def fresh(self) -> None:
        """Ask now: something was changed. What older questions hear counts no more."""
        client, asked_at, before = self._client, self._clock(), self.records
        if client is None:
            return
        found: Fact[Reservations]
        try:
            table = {one.name: _read(one) for one in await client.reservations()}
            found = Known(MappingProxyType(table), asked_at)
        except (SlurmError, hostlist.HostListError) as error:
            found = Unknown(str(error))
        late = isinstance(self._fact, Known) and self._fact.as_of > asked_at
        if client is not self._client or late or not self._needed:
            return
        self._fact, self._heard = found, True
        if not _alike(before, found):
            self._changed()

    async def run(self) -> None:
        """Ask again and again until cancelled."""
        while True:
            self._wake.clear()
            asks = self._client is not None and bool(self._needed)
            if asks:
                await self.fresh()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PACE_S if asks else None):
                    await self._wake.wait()


def _read(one: wire.Reservation) -> Reservation:
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
