"""Leads forgotten workers to register again; see `penstock.decide.slurm_node.registration`.

What was tried is remembered by the process: a slurmd that does not answer is asked again after
longer and longer pauses. A process that starts asks once more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from penstock.catalog.event import Event
from penstock.controllers.runtime.event_batch import EventBatch
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.decide.action import RegisterNode, RemoveStandIns
from penstock.kube import Cache
from penstock.kube.client.clock import Clock
from penstock.kube.runtime.state import StateByUid
from penstock.model.worker_set import WorkerSet
from penstock.slurm.known import Known
from penstock.slurm.mirror.snapshot import Snapshot
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError, UnsupportedError
from penstock.slurm.rest.node_registration import AT_ONCE, Address, register, remove
from penstock.slurm.stand_in import stand_ins
from penstock.slurm.versions import NEW_NODE_SINCE

ANSWERS_S = 5.0
"""How long slurmctld and a slurmd have to answer: seen to take less than one."""
POLL_S = 0.5
PAUSE_S, LONGEST_S = 5.0, 300.0
"""Pause after an attempt, which doubles, and the longest."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Attempt:
    """How often a node was led to register, and when it may be again, in monotonic seconds."""

    count: int
    again_at: float


@dataclass(slots=True)
class _State:
    attempts: dict[str, Attempt] = field(default_factory=dict[str, Attempt])
    """By name of the Slurm node."""
    unable: str | None = None


class NodeRegistrations:
    """The attempts of all worker sets of one kind."""

    def __init__(self, objects: Cache[Any], clock: Clock) -> None:
        self._clock = clock
        self._states = StateByUid(objects, _State)

    def unable(self, workers: WorkerSet) -> str | None:
        """Why the Slurm of a worker set cannot have nodes register again; None when it can."""
        return self._states.of(workers).unable

    def requeue_after(self, workers: WorkerSet) -> float | None:
        """Seconds until a node may be led to register again."""
        now = self._clock.monotonic()
        waits = [one.again_at - now for one in self._states.of(workers).attempts.values()]
        return max(0.1, min(waits)) if waits else None

    async def apply(
        self,
        workers: WorkerSet,
        connection: SlurmConnection,
        client: Slurmrestd,
        actions: Sequence[RegisterNode | RemoveStandIns],
        batch: EventBatch,
    ) -> None:
        """Lead some of these nodes to register, and remove stand-ins that a process left."""
        if connection.swept is not client and isinstance(connection.mirror.snapshot.nodes, Known):
            async with connection.registering:
                await self._sweep(connection, client)
        wanted = [one for one in actions if isinstance(one, RegisterNode)]
        names = {one.node for one in wanted}
        state = self._states.of(workers)
        tried = {node: one for node, one in state.attempts.items() if node in names}
        state.attempts = tried
        if not wanted:
            state.unable = None
        due = [one for one in wanted if self._is_due(tried.get(one.node))]
        if not due and len(wanted) == len(actions):
            return
        # Those that did not answer must not keep the others from being asked.
        due.sort(key=lambda one: tried[one.node].count if one.node in tried else 0)
        async with connection.registering:
            await self._remove_left(connection, client)
            if due:
                await self._register(state, connection, client, due[:AT_ONCE], batch)

    async def _sweep(self, connection: SlurmConnection, client: Slurmrestd) -> None:
        """Remove stand-ins that are FUTURE still: no list shows them, and they take room.

        Once for each client: later ones of this process are removed by itself.
        """
        if connection.swept is client or client.lacks(NEW_NODE_SINCE):
            return
        connection.swept = client
        try:
            left = stand_ins(await client.future_nodes())
            if left:
                await remove(client, left)
                log.info("stand-ins of a killed process removed", names=left)
        except SlurmError as error:
            if not error.status:
                connection.swept = None
            log.info("stand-ins not looked for", error=str(error))

    async def _remove_left(self, connection: SlurmConnection, client: Slurmrestd) -> None:
        left = stand_ins(_records(await connection.mirror.poll()))
        if not left:
            return
        connection.mirror.forget(left)
        try:
            await remove(client, left)
        except SlurmError as error:
            log.info("stand-ins not removed", names=left, error=str(error))
        await connection.mirror.poll()

    async def _register(
        self,
        state: _State,
        connection: SlurmConnection,
        client: Slurmrestd,
        due: Sequence[RegisterNode],
        batch: EventBatch,
    ) -> None:
        there = _records(await connection.mirror.poll())
        due = [one for one in due if one.node not in there]
        if not due:
            return
        addresses = [Address(one.node, one.address, one.port) for one in due]
        try:
            await register(client, addresses, partial(self._wait, connection))
        except UnsupportedError as error:
            state.unable = str(error)
        except SlurmError as error:
            # One whose answer was cut off may have made stand-ins.
            connection.swept = None
            note = f"Nodes {', '.join(one.node for one in due)} cannot register again: {error}"
            batch.warning(Event.SLURM_REFUSED, note, "RegisterNode")
        else:
            state.unable = None
        there = _records(await connection.mirror.poll())
        for one in due:
            if one.node in there:
                state.attempts.pop(one.node, None)
                batch.normal(one.why.reason, one.why.message, "RegisterNode")
            else:
                state.attempts[one.node] = self._later(state.attempts.get(one.node))

    def _is_due(self, last: Attempt | None) -> bool:
        return last is None or last.again_at <= self._clock.monotonic()

    def _later(self, last: Attempt | None) -> Attempt:
        count = 0 if last is None else last.count
        pause = min(PAUSE_S * 2 ** min(count, 10), LONGEST_S)
        return Attempt(count + 1, self._clock.monotonic() + pause)

    async def _wait(self, connection: SlurmConnection, nodes: Collection[str]) -> bool:
        """Wait until slurmctld has records of these nodes; whether it has all of them."""
        until = self._clock.monotonic() + ANSWERS_S
        while True:
            records = _records(await connection.mirror.poll())
            done = records >= set(nodes)
            if done or self._clock.monotonic() >= until:
                connection.mirror.forget(stand_ins(records))
                return done
            await self._clock.sleep(POLL_S)


def _records(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(snapshot.nodes.value if isinstance(snapshot.nodes, Known) else ())
