"""What the mirrors of one kind of record have in common: whom they ask, and the wait in between."""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from penstock.slurm.known import Fact, Known, Unknown
from penstock.slurm.mirror.snapshot import LATE, NOT_ASKED
from penstock.slurm.rest.client import Slurmrestd

T = TypeVar("T")


class PolledMirror(ABC):
    """A mirror that asks a slurmrestd again and again, used from one event loop.

    `clock` gives monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._client: Slurmrestd | None = None
        self._requested = asyncio.Event()

    def endpoint(self, client: Slurmrestd | None, why: str = "") -> None:
        """Ask this slurmrestd from now on; without one nothing is known, because of `why`."""
        if client is not self._client or client is None:
            self._client = client
            self._forget(why or NOT_ASKED)
            self._requested.set()

    def poll_soon(self) -> None:
        """Something was changed: ask now."""
        self._requested.set()

    async def run(self) -> None:
        """Ask again and again until cancelled."""
        while True:
            self._requested.clear()
            client = self._client
            pause = await self._poll(client) if client is not None else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._requested.wait()

    @abstractmethod
    def _forget(self, why: str) -> None:
        """Nothing is known, because of `why`."""

    @abstractmethod
    async def _poll(self, client: Slurmrestd) -> float | None:
        """Ask now if anybody needs to know; seconds until it is due again, None for never.

        Answers count only while `client` is the one that is asked.
        """

    def _recent(self, fact: Fact[T], stale_s: float) -> Fact[T]:
        """A fact, or that it is unknown since the answer is older than `stale_s`."""
        if isinstance(fact, Known) and self._clock() - fact.as_of > stale_s:
            return Unknown(LATE)
        return fact
