"""Runs the caches, controllers, leader election and graceful shutdown of one process."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import structlog

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.kube.cache.cache import Cache
from penstock.kube.cache.reflector import Pace
from penstock.kube.client.client import Client
from penstock.kube.runtime.controller import Controller
from penstock.kube.runtime.events import Recorder
from penstock.kube.runtime.leader import Leader, Run
from penstock.kube.runtime.leader_election import Lease

T = TypeVar("T", bound=KubeObject)

DEAD_WATCH_S: Final = 600.0
"""Seconds without any sign of life of a watch; one that works shows one every 90 s or tries."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Key:
    resource: Resource[Any]
    namespaces: tuple[str, ...]
    labels: str
    fields: str


class Manager:
    """Starts and stops all caches, controllers and background tasks of one process.

    Caches run in every process, so that a standby is warm. Controllers and functions added with
    `run_while_leading` run only while this process leads; without a Lease it always leads. Those
    of a Leader that was added run while that one leads, whoever has the Lease of the first.
    `namespaces` narrows all caches of namespaced resources. `grace` are the seconds that
    reconciles under way get at the end.
    """

    def __init__(
        self,
        client: Client,
        *,
        lease: Lease | None = None,
        recorder: Recorder | None = None,
        namespaces: Iterable[str] = (),
        grace: float = 20.0,
        pace: Pace | None = None,
    ) -> None:
        self.client = client
        self._leaders = [Leader(client, lease=lease, recorder=recorder, grace=grace)]
        self._namespaces = tuple(namespaces)
        self._pace = pace
        self._caches: dict[_Key, Cache[Any]] = {}
        self._needed: set[_Key] = set()
        self._always: list[Run] = []
        self._stop = asyncio.Event()
        self._started = False
        self._own_process = False

    def cache(
        self,
        resource: Resource[T],
        *,
        namespaces: Iterable[str] | None = None,
        labels: str = "",
        fields: str = "",
        raw: bool = False,
        on_demand: bool = False,
        needed: bool = True,
    ) -> Cache[T]:
        """The cache of that resource and selector, the same one for everybody who asks.

        Nothing begins before all that are needed are synced. One that nobody needs holds up only
        the controllers that watch it: the process may lack the right to read it.
        Raises RuntimeError when a new one is asked for after the start.
        """
        scope = self._namespaces if namespaces is None else tuple(sorted(namespaces))
        key = _Key(resource, scope, labels, fields)
        found = cast("Cache[T] | None", self._caches.get(key))
        if self._started and (found is None or (raw and not found.keep_raw)):
            raise RuntimeError(f"cache of {resource.plural} asked for after the start")
        if found is None:
            found = Cache(
                self.client,
                resource,
                namespaces=scope,
                labels=labels,
                fields=fields,
                on_demand=on_demand,
                pace=self._pace,
            )
            self._caches[key] = found
        found.keep_raw = found.keep_raw or raw
        if needed:
            self._needed.add(key)
        return found

    @property
    def watched(self) -> tuple[tuple[Resource[Any], str], ...]:
        """What its caches hold: resource and label selector of each."""
        return tuple((key.resource, key.labels) for key in self._caches)

    @property
    def leader(self) -> Leader:
        """What runs while this process has the Lease of the manager's own client."""
        return self._leaders[0]

    def add(self, controller: Controller) -> None:
        """Run this controller while leading."""
        self._leaders[0].add(controller)

    def run_while_leading(self, run: Run) -> None:
        """Run this too while leading; it is cancelled when the controllers have ended."""
        self._leaders[0].run_while_leading(run)

    def add_leader(self, leader: Leader) -> None:
        """Run what belongs to another Lease while this process has it. Call it before `run`."""
        self._leaders.append(leader)

    def run_always(self, run: Run) -> None:
        """Run this in every process; it is cancelled last."""
        self._always.append(run)

    def stop(self) -> None:
        """Begin the orderly end; `run` returns when it is reached."""
        self._stop.set()

    def not_ready(self) -> str | None:
        """What is missing until this process is of use, as leader or as standby; else None."""
        waiting = sorted(
            {key.resource.plural for key in self._needed if not self._caches[key].synced}
        )
        return f"waiting for {', '.join(waiting)}" if waiting else None

    def not_alive(self) -> str | None:
        """What no longer works in this process, so that it has to be restarted; else None.

        An API server that is away is no reason: a process that works goes on trying.
        """
        for key, cache in self._caches.items():
            if cache.idle() > DEAD_WATCH_S:
                return f"watch of {key.resource.plural} is dead"
        return next(filter(None, (one.not_alive() for one in self._leaders)), None)

    async def run(self, *, signals: bool = False) -> None:
        """Run until `stop`, or until SIGTERM or SIGINT when `signals` are asked for.

        With `signals` the process is taken to be the manager's own, and its memory is tuned so.
        Raises an ExceptionGroup with NotLeaderError when a Lease is lost: the process should end
        then, and come back as a candidate.
        """
        self._started = True
        self._own_process = signals
        loop = asyncio.get_running_loop()
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop)
        try:
            async with asyncio.TaskGroup() as group:
                background = [group.create_task(c.run()) for c in self._caches.values()]
                background += [group.create_task(run()) for run in self._always]
                background.append(group.create_task(self._loop_lag()))
                await self._until_stopped()
                for task in background:
                    task.cancel()
        finally:
            if signals:
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.remove_signal_handler(number)

    async def _until_stopped(self) -> None:
        async with asyncio.TaskGroup() as group:
            synced = group.create_task(self._sync())
            stopping = group.create_task(self._stop.wait())
            await asyncio.wait((synced, stopping), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            synced.cancel()
        if self._stop.is_set():
            return
        async with asyncio.TaskGroup() as group:
            for leader in self._leaders:
                group.create_task(leader.run(self._stop))

    async def _sync(self) -> None:
        for key in self._needed:
            await self._caches[key].wait_synced()
        log.info("caches synced", caches=len(self._needed))
        if self._own_process:
            # What was just loaded stays: no reason for the collector to walk it again and again.
            gc.collect()
            gc.freeze()

    async def _loop_lag(self) -> None:
        clock, interval = self.client.clock, 5.0
        while True:
            asked_at = clock.monotonic()
            await clock.sleep(interval)
            self.client.metrics.loop_lag.set(clock.monotonic() - asked_at - interval)
