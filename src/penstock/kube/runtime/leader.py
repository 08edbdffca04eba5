"""What runs while this process has one Lease: controllers, functions and the event recorder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

from penstock.kube.client.client import Client
from penstock.kube.client.clock import deadline
from penstock.kube.runtime.controller import Controller
from penstock.kube.runtime.events import Recorder
from penstock.kube.runtime.leader_election import Lease

STUCK_S: Final = 60.0
"""Seconds beyond its time after which work counts as stuck."""
Run = Callable[[], Coroutine[Any, Any, None]]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Leader:
    """Runs its controllers and functions while this process leads; without a Lease it always does.

    `client` is the one that they write with: the Lease guards each of its writes, so each Leader
    of a process needs a client of its own, and a recorder that emits events with it. `grace` are
    the seconds that reconciles under way get at the end.
    """

    def __init__(
        self,
        client: Client,
        *,
        lease: Lease | None = None,
        recorder: Recorder | None = None,
        grace: float = 20.0,
    ) -> None:
        self.client = client
        self.lease = lease
        self.recorder = recorder
        self._grace = grace
        self._controllers: list[Controller] = []
        self._beside: list[Run] = []
        self._working = False
        self._led_at = client.clock.monotonic()
        if lease is not None:
            # A process that was frozen must not write before it has read the Lease again.
            client.guard = lease.is_leading

    def add(self, controller: Controller) -> None:
        """Run this controller while leading."""
        self._controllers.append(controller)

    def run_while_leading(self, run: Run) -> None:
        """Run this too while leading; it is cancelled when the controllers have ended."""
        self._beside.append(run)

    def not_alive(self) -> str | None:
        """What no longer works and only a new process brings back; else None."""
        for controller in self._controllers:
            found = controller.overdue()
            if found is not None and found[1] > STUCK_S:
                return f"reconcile of {controller.name} {found[0]} does not end"
        lease = self.lease
        if lease is None:
            return None
        if lease.idle() > STUCK_S:
            return f"Lease {lease.name} is not renewed"
        now = self.client.clock.monotonic()
        if not self._working or lease.is_leading():
            self._led_at = now
        elif now - self._led_at > self._grace + STUCK_S:
            return f"Lease {lease.name} is lost and the work does not end"
        return None

    async def run(self, stop: asyncio.Event) -> None:
        """Wait to lead, and work until `stop`; the Lease is released after all has ended.

        Raises NotLeaderError when the Lease is lost.
        """
        async with asyncio.TaskGroup() as group:
            leading = group.create_task(self._lead(stop))
            stopping = group.create_task(stop.wait())
            await asyncio.wait((leading, stopping), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not self._working:
                leading.cancel()
            for controller in self._controllers:
                controller.stop()

    async def _lead(self, stop: asyncio.Event) -> None:
        if self.lease is None:
            await self._work(stop)
        else:
            await self.lease.lead(lambda: self._work(stop))

    async def _work(self, stop: asyncio.Event) -> None:
        gauge = self.client.metrics.leader
        gauge.inc()
        self._working = True
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(run()) for run in self._beside]
                if self.recorder is not None:
                    group.create_task(self.recorder.run())
                await self._run_controllers(stop)
                for task in beside:
                    task.cancel()
                if self.recorder is not None:
                    self.recorder.stop()
        finally:
            self._working = False
            gauge.dec()

    async def _run_controllers(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run()) for one in self._controllers]
            await stop.wait()
            if not tasks:
                return
            try:
                async with deadline(self.client.clock, self._grace):
                    await asyncio.wait(tasks)
            except TimeoutError:
                log.warning("reconciles did not end in time", grace=self._grace)
                for task in tasks:
                    task.cancel()
