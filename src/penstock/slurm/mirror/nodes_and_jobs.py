"""The mirror: what slurmctld knows of one cluster, with its freshness.

One mirror per cluster asks for everything at once (two calls a poll, never one per node), for
changes only while it may, often while something moves and rarely while the cluster is settled; even
more rarely beside many clusters while it is at rest, see `penstock.slurm.mirror.pace`.

It never turns a failure into a fact. Old answers become Unknown after a while. An empty node list
is Unknown, unless we deleted the last record, until it has repeated itself for a minute and
slurmctld's own counters show that it runs for as long: slurmctld answers so, with HTTP 200, when it
lost its state, and a first cluster lists none until its first worker registers. A list that lacks
half of the known nodes is Unknown until it has repeated itself for a minute. One missing node is
unknown, not gone: see `Snapshot.node`.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

import structlog

from penstock.slurm.known import Unknown
from penstock.slurm.mirror.pace import Pace, align
from penstock.slurm.mirror.snapshot import (
    LATE,
    NOT_ASKED,
    ListCache,
    NodeListFilter,
    Snapshot,
    Uptime,
    changed_nodes,
    with_reused_records,
)
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import AuthError, BadReplyError, SlurmError
from penstock.slurm.state import BUSY, Job, Node, is_draining

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

T = TypeVar("T")

STOPPED = "the mirror of this cluster is not running"
MOVING = frozenset({"COMPLETING", "UNKNOWN", "POWERING_UP", "POWERING_DOWN"})

Subscriber = Callable[[frozenset[str]], None]


class Mirror:
    """The mirror of one cluster, used from one event loop.

    `clock` gives monotonic seconds. Nothing is known until `endpoint` named a slurmrestd and `run`
    is running. `stretch` returns how many times longer a cluster at rest may wait.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        pace: Pace | None = None,
        stretch: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self._clock = clock
        self._pace = pace or Pace()
        self._stretch = stretch
        self._client: Slurmrestd | None = None
        self._absent = NOT_ASKED
        self._nodes = NodeListFilter(self._pace.stale, self._pace.confirm_s)
        self._jobs = ListCache[tuple[Job, ...]](self._pace.stale)
        self._asked_at: float | None = None
        self._whole_at = -math.inf
        self._polled_at = -math.inf
        self._moving_until = -math.inf
        self._used_at = clock()
        self._failures = 0
        self._running = False
        self._requested = asyncio.Event()
        self._waiting: asyncio.Future[Snapshot] | None = None
        self._served: asyncio.Future[Snapshot] | None = None
        self._subscribers: list[Subscriber] = []
        self._notified = self._at()
        self._read_unknown = False
        self._judged: tuple[Mapping[str, Node] | None, bool, bool] = (None, False, False)

    @property
    def snapshot(self) -> Snapshot:
        """What is known now, without asking."""
        found = self._at()
        # An answer expires between two polls. Subscribers that read Unknown must be notified of
        # the next good answer, even if it equals the last one.
        self._read_unknown |= not found.known
        return found

    def endpoint(self, client: Slurmrestd | None, why: str = "") -> None:
        """Ask this slurmrestd from now on; without one everything is Unknown, because of `why`."""
        if client is self._client and why == self._absent:
            return
        self._client, self._absent = client, why
        self._failures, self._polled_at, self._whole_at = 0, -math.inf, -math.inf
        self._used_at = self._clock()
        self._requested.set()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with the names of nodes whose record or jobs changed.

        A change between known and unknown names every known node, and no node if none is known.
        The returned function ends the subscription.
        """
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def poll_soon(self) -> None:
        """Something is about to change: ask often for a while."""
        self._used_at = self._clock()
        self._moving_until = self._clock() + self._pace.moving_for
        self._requested.set()

    def record_use(self) -> None:
        """Record that a controller reads this cluster, which is therefore not at rest."""
        rested, self._used_at = self.stretch > 1, self._clock()
        if rested:
            self._requested.set()

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing changed or moves, and no controller read this cluster, for a while."""
        now = self._clock()
        used = now - self._used_at < self._pace.rest_after or now < self._moving_until
        return not (used or self._failures or self._judge()[0])

    @property
    def stretch(self) -> float:
        """How many times longer than other settled clusters this one waits: 1 if not at rest."""
        found = self._stretch()
        return found if found > 1 and self.is_at_rest and not self._judge()[1] else 1.0

    def forget(self, names: Iterable[str]) -> None:
        """We deleted these node records: a list without them is to be believed."""
        self._nodes.forget(names)

    async def poll(self) -> Snapshot:
        """Return slurmctld's answer to a new request; concurrent callers share one poll.

        Facts are Unknown when that poll failed. It takes at most two timeouts of the client, the
        first for a poll that is already under way and does not count.
        """
        if not self._running:
            return Snapshot(Unknown(STOPPED), Unknown(STOPPED))
        self._used_at = self._clock()
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
        self._requested.set()
        return await asyncio.shield(self._waiting)

    def due(self) -> float:
        """When it will ask next: monotonic seconds, infinite if there is nobody to ask."""
        if self._waiting is not None or self._polled_at == -math.inf:
            return -math.inf
        if self._client is None:
            return math.inf
        if self._failures:
            pause = min(self._pace.moving * 2 ** min(self._failures - 1, 10), self._pace.back_off)
        elif self._clock() < self._moving_until or self._judge()[0]:
            pause = self._pace.moving
        else:
            return align(self._polled_at, self._pace.settled * self.stretch)
        return self._polled_at + pause

    async def run(self) -> None:
        """Keep the mirror until cancelled."""
        self._running = True
        try:
            while True:
                await self._pause()
                self._served, self._waiting = self._waiting, None
                while (answer := await self._poll()) is None:
                    pass
                _resolve(self._served, answer)
                self._notify()
        finally:
            self._running = False
            stopped = Snapshot(Unknown(STOPPED), Unknown(STOPPED))
            _resolve(self._served, stopped)
            _resolve(self._waiting, stopped)

    def _at(self, *, fresh: bool = False) -> Snapshot:
        if self._client is None:
            return Snapshot(Unknown(self._absent), Unknown(self._absent), self._asked_at)
        # After a longer pause as much time is left for the next answer.
        now, grace = self._clock(), self._pace.settled * (self._stretch() - 1)
        return Snapshot(
            self._nodes.fact(now, fresh=fresh, grace=grace),
            self._jobs.fact(now, fresh=fresh, grace=grace),
            self._asked_at,
        )

    async def _pause(self) -> None:
        """Wait until the next poll is due, a caller wants a fresh answer, or all changed."""
        while (wait := self.due() - self._clock()) > 0:
            self._requested.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if wait == math.inf else wait):
                    await self._requested.wait()

    def _judge(self) -> tuple[bool, bool]:
        """Whether a node is in a transient state or drains with jobs on it; whether one is off.

        slurmctld may power a node up for a job at any time, and its pod has to follow at once.
        """
        nodes = self._nodes.value
        if nodes is not self._judged[0]:
            states = {node.state for node in (nodes or {}).values()}
            sleeps = any("POWERED_DOWN" in state for state in states)
            self._judged = nodes, any(map(_passes, states)), sleeps
        return self._judged[1:]

    async def _poll(self) -> Snapshot | None:
        """Send one pair of requests; None if another slurmrestd was set in the meantime."""
        client = self._client
        asked_at = self._polled_at = self._clock()
        if client is None:
            return self._at()
        whole = self._wants_whole(asked_at)
        nodes, jobs = await asyncio.gather(
            _answer(client.nodes, None if whole else self._nodes.update_time),
            _answer(client.jobs, None if whole else self._jobs.update_time),
        )
        uptime = None
        if not isinstance(nodes, SlurmError | None) and self._nodes.needs_uptime(
            nodes.items, asked_at
        ):
            uptime = await _uptime(client)
        if client is not self._client:
            return None
        self._polled_at, self._asked_at = self._clock(), asked_at
        if isinstance(nodes, SlurmError):
            self._nodes.fail(str(nodes), denied=isinstance(nodes, AuthError))
        elif nodes is None:
            self._nodes.unchanged(asked_at)
        else:
            table = MappingProxyType(with_reused_records(self._nodes.value, nodes.items))
            self._nodes.accept(table, nodes.last_update, asked_at, uptime)
        if isinstance(jobs, SlurmError):
            self._jobs.fail(str(jobs), denied=isinstance(jobs, AuthError))
        elif jobs is None:
            self._jobs.unchanged(asked_at)
        else:
            self._jobs.store(jobs.items, jobs.last_update, asked_at)
        failed = isinstance(nodes, SlurmError) or isinstance(jobs, SlurmError)
        self._failures = self._failures + 1 if failed else 0
        if whole and not failed:
            self._whole_at = asked_at
        return self._at(fresh=True)

    def _wants_whole(self, now: float) -> bool:
        """Whether changes would not do: after a failure, for a fresh answer, and now and then."""
        return (
            self._served is not None
            or self._failures > 0
            or now - self._whole_at >= self._pace.whole
        )

    def _notify(self) -> None:
        old, self._notified = self._notified, self._at()
        if self._read_unknown and old.known and self._notified.known:
            old = Snapshot(Unknown(LATE), Unknown(LATE))
        self._read_unknown = False
        names = changed_nodes(old, self._notified)
        if names is None:
            return
        self._used_at = self._clock()
        self._moving_until = max(self._moving_until, self._used_at + self._pace.moving_for)
        for subscriber in tuple(self._subscribers):
            subscriber(names)


def _passes(state: frozenset[str]) -> bool:
    return bool(state & MOVING) or (is_draining(state) and bool(state & BUSY))


async def _answer(call: Callable[[int | None], Awaitable[T]], since: int | None) -> T | SlurmError:
    # Called here: a coroutine that is made for a task that never begins is never awaited.
    try:
        return await call(since)
    except SlurmError as error:
        return error
    except Exception as error:
        # One answer that nobody thought of must not end the view of a whole cluster.
        log.exception("slurmrestd's answer cannot be processed")
        return BadReplyError(f"slurmrestd's answer cannot be processed: {type(error).__name__}")


async def _uptime(client: Slurmrestd) -> Uptime | None:
    """Uptime of slurmctld; None if it does not report one."""
    try:
        seconds = (await client.diag()).counted_s
    except SlurmError:
        return None
    return None if seconds is None else Uptime(seconds)


def _resolve(waiting: asyncio.Future[Snapshot] | None, answer: Snapshot) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(answer)
