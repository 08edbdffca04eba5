"""What slurmrestd reports of one cluster, asked for changes only.

slurmctld answers "no change" from one number, so a settled cluster costs it next to nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from penstock.controllers.exporter.access import Tokens
from penstock.controllers.exporter.arguments import JobSource
from penstock.kube import Clock
from penstock.slurm.rest.errors import AuthError
from penstock.slurm.rest.records import Counters, JobRecord, NodeRecord
from penstock.slurm.rest.records_client import RecordsClient
from penstock.slurm.rest.wire import Listing

T = TypeVar("T")

WHOLE_S: Final = 600.0
"""Seconds after which a list is asked for as a whole, changed or not."""
AHEAD_S: Final = 300
"""Seconds that the window of slurmdbd's jobs reaches into the future: clocks differ."""
STALE_S: Final = 30 * 86400
"""Age of a job in slurmdbd that never started: slurmctld forgot it, and slurmdbd did not see."""


class Source(Protocol):
    """Where a collection comes from. Each raises SlurmError; None means that nothing changed."""

    async def nodes(self) -> tuple[NodeRecord, ...] | None:
        """All Slurm nodes."""
        ...

    async def jobs(self) -> tuple[JobRecord, ...] | None:
        """All jobs."""
        ...

    async def counters(self) -> Counters:
        """Counters of slurmctld."""
        ...


class _Changes:
    """When a list was last changed and last asked for as a whole."""

    def __init__(self) -> None:
        self.since: int | None = None
        self._whole_at = float("-inf")

    async def ask(
        self, call: Callable[[int | None], Awaitable[Listing[T] | None]], now: float
    ) -> tuple[T, ...] | None:
        """The list, or None when it did not change. After a failure it is asked for as a whole."""
        since = self.since if now - self._whole_at < WHOLE_S else None
        self.since = None
        found = await call(since)
        if found is None:
            self.since = since
            return None
        self.since = found.last_update
        if since is None:
            self._whole_at = now
        return found.items


class SlurmrestdSource:
    """A Source that is a slurmrestd."""

    def __init__(
        self,
        client: RecordsClient,
        tokens: Tokens,
        clock: Clock,
        job_source: JobSource,
        lookback_s: float,
    ) -> None:
        self._client = client
        self._tokens = tokens
        self._clock = clock
        self._job_source = job_source
        self._lookback_s = lookback_s
        self._nodes, self._jobs = _Changes(), _Changes()

    async def nodes(self) -> tuple[NodeRecord, ...] | None:
        """All Slurm nodes."""
        return await self._call(lambda: self._nodes.ask(self._client.nodes, self._now()))

    async def jobs(self) -> tuple[JobRecord, ...] | None:
        """Jobs of slurmctld, which are those of the last MinJobAge too, or of slurmdbd."""
        if self._job_source == "accounting":
            return await self._call(self._stored)
        return await self._call(lambda: self._jobs.ask(self._client.jobs, self._now()))

    async def counters(self) -> Counters:
        """Counters of slurmctld."""
        return await self._call(self._client.counters)

    async def _stored(self) -> tuple[JobRecord, ...]:
        now = int(self._clock.time())
        found = await self._client.stored_jobs(now - int(self._lookback_s), now + AHEAD_S)
        return tuple(one for one in found if not is_stale(one, now))

    def _now(self) -> float:
        return self._clock.monotonic()

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            await self._tokens.renew()
            return await call()
        except AuthError:
            self._tokens.expire()
            raise


def is_stale(job: JobRecord, now: int) -> bool:
    """Whether a job in slurmdbd never started, and is too old to wait still."""
    never_ran = not job.start_time and not job.end_time
    return never_ran and 0 < job.submit_time < now - STALE_S
