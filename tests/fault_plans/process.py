"""One process of the operator: the real one, on simulated connections, that can crash."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import cast
from urllib.parse import urlsplit

from fault_plans import tiny_reconciler as tiny_api
from fault_plans import worker_sets
from fault_plans.actions import files
from fault_plans.api_names import NEIGHBOURS, OF_NEBIUS, OF_SLINKY, ApiNames
from penstock.api.kubernetes.meta import KubeObject
from penstock.controllers.operator import REPORTER, Operator
from penstock.controllers.registry import SERVED_APIS
from penstock.controllers.runtime.connectivity import Connect
from penstock.controllers.runtime.settings import Settings
from penstock.kube import Client, Lease, Manager, NotLeaderError, Recorder
from penstock.kube.client.clock import Clock
from penstock.kube.client.transport import Request, Response
from penstock.simulation.apiserver import ApiServer, Connection, Trouble
from penstock.simulation.kubelet.kubelet import NODES
from penstock.simulation.pause import PausableClock
from penstock.simulation.slurm.cluster import SlurmLine
from penstock.slurm.rest.http import Answer, unfenced

OPERATOR = "operator"
LEASE_SPACE = "penstock"
listed_at: ContextVar[Mapping[str, float]] = ContextVar("listed_at", default=MappingProxyType({}))
"""By namespace, when the sender of a request last received all Slurm nodes, in loop seconds."""
shown_at: ContextVar[float] = ContextVar("shown_at", default=float("-inf"))
"""Up to when the sender of a request to Slurm was shown declared objects, in loop seconds."""


class Process:
    """Use `start`, then `crash` or `stop`. `crash_after` counts down with each write.

    `lines` are the ways to the Slurm clusters by namespace. With `leased` it acts only while it
    holds the operator's Lease as `identity`; `acts` is called when it sends something that changes
    Kubernetes or Slurm, with whether it had to hold the Lease for it.
    """

    def __init__(
        self,
        server: ApiServer,
        lines: Mapping[str, SlurmLine],
        clock: Clock,
        *,
        identity: str,
        leased: bool,
        latency: Callable[[], float],
        lag: Callable[[], float],
        acts: Callable[[str, str], None],
        wrote: Callable[[Request, Response], None],
        dial: Connect,
        tiny: bool = False,
        names: ApiNames = OF_SLINKY,
        together: bool = False,
        hesitation: Callable[[], float],
    ) -> None:
        self.connection = Connection(
            server, OPERATOR, latency=latency, lag=lag, sending=self._sending, wrote=self._count
        )
        self.lines = lines
        self.identity = identity
        self.leased = leased
        self.pauses_for = 0.0
        """Seconds for which it stands still once it is connected for its next write to Slurm."""
        self.crash_after: int | None = None
        self.crashed = asyncio.Event()
        self._acts = acts
        self._wrote = wrote
        self._clock = PausableClock(clock, hesitation)
        self._dial = dial
        self._apis = tiny_api.WITH_CREWS if tiny else SERVED_APIS
        self._names = names
        self._only = (names.group,) if names is OF_NEBIUS and not together else None
        """The API groups that it serves; None for all."""
        if names is OF_NEBIUS:
            self._declared = (worker_sets.NEBIUS_NODESETS, worker_sets.CLUSTERS, NODES)
        else:
            self._declared = (worker_sets.CREWS if tiny else worker_sets.NODESETS, NODES)
        """What defines how many workers there are to be."""
        self._task: asyncio.Task[None] | None = None
        self._manager: Manager | None = None

    def start(self, ended: Callable[[Process], None] = lambda _: None) -> None:
        """Begin; `ended` is called when it ends by itself."""
        client = Client(self.connection, clock=self._clock)
        recorder = Recorder(client, REPORTER, "simulated")
        lease = None
        if self.leased:
            own = Client(self.connection, clock=self._clock, metrics=client.metrics)
            lease = Lease(own, LEASE_SPACE, self._names.lease, self.identity)
        self._manager = Manager(client, lease=lease, recorder=recorder)
        Operator(
            client,
            self._manager,
            recorder,
            Settings(apis=self._only) if self._only is not None else Settings(),
            url_of=_url,
            exchange=self._exchange,
            connect=self._dial,
            apis=self._apis,
        )
        self._task = asyncio.create_task(self._manager.run())
        self._task.add_done_callback(lambda _: None if self._dead else ended(self))

    @property
    def failure(self) -> BaseException | None:
        """What ended the process by itself, which nothing should."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    @property
    def deposed(self) -> bool:
        """Whether it ended because it had lost its Lease, as it should then."""
        return _all(self.failure, NotLeaderError)

    async def crash(self) -> None:
        """End at once, with everything under way cut off in the middle."""
        self._cut()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def stop(self) -> None:
        """End in order."""
        if self._manager is not None and self._task is not None:
            self._manager.stop()
            await self._task

    def _pause(self) -> None:
        seconds, self.pauses_for = self.pauses_for, 0.0
        self._clock.pause(seconds)
        stopped = Trouble(slow=seconds, times=sys.maxsize)
        self.connection.trouble(stopped)
        self.connection.delay_events()

        def go_on() -> None:
            if stopped in self.connection.troubles:
                self.connection.troubles.remove(stopped)
            self.connection.release_events()

        asyncio.get_running_loop().call_later(seconds, go_on)

    @property
    def _dead(self) -> bool:
        return self.connection.dead

    async def _exchange(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        fence: Callable[[], None] = unfenced,
        /,
    ) -> Answer:
        if method != "GET" and self.pauses_for:
            self._pause()
        await self._clock.stand_still(lambda: self._dead)
        fence()
        if method != "GET" and self.leased:
            self._acts(self.identity, f"{method} {url}")
        shown_at.set(min(map(self.connection.shown, self._declared)))
        space = (urlsplit(url).hostname or "").partition(".")[2]
        return await self.lines[space].exchange(url, method, headers, body, fence)

    def _sending(self, request: Request) -> None:
        files.shown_at.set(self.connection.shown(self._names.clusters))
        listed_at.set({space: line.rest.listed_at for space, line in self.lines.items()})
        if self.leased and "/leases" not in request.path:
            self._acts(self.identity, f"{request.method} {request.path}")

    def _count(self, request: Request, response: Response) -> None:
        self._wrote(request, response)
        if self.crash_after is None or "/events" in request.path or "/leases" in request.path:
            return
        self.crash_after -= 1
        if self.crash_after <= 0:
            self.crash_after = None
            self._cut()

    def _cut(self) -> None:
        self.connection.kill()
        for line in self.lines.values():
            line.dead = True
        self.crashed.set()


def _url(declared_by: KubeObject) -> str:
    meta = declared_by.metadata
    return f"http://slurmrestd.{meta.name if meta.name in NEIGHBOURS else meta.namespace}"


def _all(error: BaseException | None, kind: type[Exception]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(_all(one, kind) for one in group.exceptions)
    return isinstance(error, kind)
