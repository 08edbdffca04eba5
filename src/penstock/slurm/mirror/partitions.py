"""Mirror of slurmctld's partitions: polled rarely, and at once after our own changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from penstock.slurm.known import Fact, Known, Unknown
from penstock.slurm.mirror.pace import align
from penstock.slurm.mirror.polled_mirror import PolledMirror
from penstock.slurm.mirror.snapshot import NOT_ASKED
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.rest.wire import Partition

PACE_S = 15.0
"""Seconds between two questions; one call each."""
STALE_S = 45.0

Records = Mapping[str, Partition]


class PartitionMirror(PolledMirror):
    """The partitions of one cluster, used from one event loop. `clock` gives monotonic seconds.

    `polled` is called after each answer and each failure. `stretch` returns how many times longer
    the next one may take.
    """

    def __init__(
        self,
        polled: Callable[[], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        stretch: Callable[[], float] = lambda: 1.0,
    ) -> None:
        super().__init__(clock=clock)
        self._polled = polled
        self._stretch = stretch
        self._fact: Fact[Records] = Unknown(NOT_ASKED)

    @property
    def records(self) -> Fact[Records]:
        """The partitions by name; `as_of` is when they were asked for."""
        return self._recent(self._fact, STALE_S)

    def _forget(self, why: str) -> None:
        self._fact = Unknown(why)

    async def _poll(self, client: Slurmrestd) -> float:
        asked_at = self._clock()
        try:
            found = await client.partitions()
        except SlurmError as error:
            if client is self._client:
                self._fact = Unknown(str(error))
        else:
            if client is self._client:
                table = MappingProxyType({one.name: one for one in found})
                self._fact = Known(table, asked_at)
        self._polled()
        now = self._clock()
        return align(now, PACE_S * self._stretch()) - now
