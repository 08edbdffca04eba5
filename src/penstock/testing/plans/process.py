"""One process of the operator: the real one, on simulated connections, that can crash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.api.slinky.restapi import RestApi
from penstock.controllers.operator import REPORTER, Operator
from penstock.controllers.settings import Settings
from penstock.kube import Client, Manager, Recorder
from penstock.kube.clock import Clock
from penstock.kube.transport import Request, Response
from penstock.testing.apiserver import ApiServer, Connection
from penstock.testing.slurm import SlurmLine

OPERATOR = "operator"


class Process:
    """Use `start`, then `crash` or `stop`. `crash_after` counts down with each write."""

    def __init__(
        self,
        server: ApiServer,
        line: SlurmLine,
        clock: Clock,
        *,
        latency: Callable[[], float],
        lag: Callable[[], float],
        wrote: Callable[[Request, Response], None],
    ) -> None:
        self.connection = Connection(server, OPERATOR, latency=latency, lag=lag, wrote=self._count)
        self.line = line
        self.crash_after: int | None = None
        self.crashed = asyncio.Event()
        self._wrote = wrote
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._manager: Manager | None = None

    def start(self) -> None:
        """Begin."""
        client = Client(self.connection, clock=self._clock)
        recorder = Recorder(client, REPORTER, "simulated")
        self._manager = Manager(client, recorder=recorder)
        Operator(
            client,
            self._manager,
            recorder,
            Settings(),
            url_of=_url,
            exchange=self.line.exchange,
        )
        self._task = asyncio.create_task(self._manager.run())

    @property
    def failure(self) -> BaseException | None:
        """What ended the process by itself, which nothing should."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

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

    def _count(self, request: Request, response: Response) -> None:
        self._wrote(request, response)
        if self.crash_after is None or "/events" in request.path:
            return
        self.crash_after -= 1
        if self.crash_after <= 0:
            self.crash_after = None
            self._cut()

    def _cut(self) -> None:
        self.connection.kill()
        self.line.dead = True
        self.crashed.set()


def _url(_: RestApi) -> str:
    return "http://slurmrestd"
