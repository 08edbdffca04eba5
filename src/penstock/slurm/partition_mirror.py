"""What slurmctld says of its partitions: asked rarely, and at once when we changed one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from penstock.slurm.known import Fact, Known, Unknown
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.rest.wire import Partition
from penstock.slurm.snapshot import LATE, NOT_ASKED

PACE_S = 15.0
"""Seconds between two questions; one call each."""
STALE_S = 45.0

Records = Mapping[str, Partition]


class PartitionMirror:
    """The partitions of one cluster, used from one event loop. `clock` gives monotonic seconds.

    `heard` is called after each answer and each failure.
    """

    def __init__(
        self, heard: Callable[[], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._heard = heard
        self._clock = clock
        self._client: Slurmrestd | None = None
        self._fact: Fact[Records] = Unknown(NOT_ASKED)
        self._wake = asyncio.Event()

    @property
    def records(self) -> Fact[Records]:
        """The partitions by name; `as_of` is when they were asked for."""
        found = self._fact
        if isinstance(found, Known) and self._clock() - found.as_of > STALE_S:
            return Unknown(LATE)
        return found

    def endpoint(self, client: Slurmrestd | None, why: str = "") -> None:
        """Ask this slurmrestd from now on; without one nothing is known, because of `why`."""
        if client is not self._client or client is None:
            self._client = client
            self._fact = Unknown(why or NOT_ASKED)
            self._wake.set()

    def poke(self) -> None:
        """Something was changed: ask now."""
        self._wake.set()

    async def run(self) -> None:
        """Ask again and again until cancelled."""
        while True:
            self._wake.clear()
            await self._ask()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PACE_S if self._client is not None else None):
                    await self._wake.wait()

    async def _ask(self) -> None:
        client, asked_at = self._client, self._clock()
        if client is None:
            return
        try:
            found = await client.partitions()
        except SlurmError as error:
            if client is self._client:
                self._fact = Unknown(str(error))
        else:
            if client is self._client:
                table = MappingProxyType({one.name: one for one in found})
                self._fact = Known(table, asked_at)
        self._heard()
