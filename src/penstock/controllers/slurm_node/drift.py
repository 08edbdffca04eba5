"""Detects nodes that were changed in Slurm itself, reports them, and does as the user chose."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.catalog.event import Event
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.controllers.runtime.spec_adoption import adopt_into_spec
from penstock.controllers.workers.source import WorkerSource
from penstock.decide.drift import AGAIN_S, CONFIRM_S, Choice, Found, Watch, is_reported, with_reason
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.slurm_node import drift as decide
from penstock.decide.slurm_node.drift import NodeDrift
from penstock.kube import Cache, Client
from penstock.kube.runtime.state import StateByUid
from penstock.model.worker_set import WorkerSet
from penstock.slurm.known import Known, Unknown
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.state import Node

AT_ONCE = 16


@dataclass(slots=True)
class _State:
    watch: Watch = field(default_factory=Watch)
    compared: tuple[tuple[float, int], NodeDrift] | None = None
    """Time of the answer and generation that were compared last, and what came of it."""


class NodeDrifts:
    """The nodes of all worker sets of one kind."""

    def __init__(self, client: Client, objects: Cache[Any], events: Events) -> None:
        self._client = client
        self._events = events
        self._states = StateByUid(objects, _State)

    def requeue_after(self, workers: WorkerSet) -> float | None:
        """Seconds until they are to be compared again; None when a change triggers that."""
        watch = self._states.of(workers).watch
        return CONFIRM_S / 2 if watch.waits else AGAIN_S if watch.found else None

    async def resolve(
        self,
        source: WorkerSource,
        view: WorkerSetView,
        connection: SlurmConnection | None,
        chosen: Choice,
    ) -> list[str] | None:
        """Report changed nodes and do with them as `chosen`; returns what still differs.

        None while that is not known. Raises KubeError.
        """
        workers = view.workers
        watch = self._states.of(workers).watch
        if isinstance(view.nodes, Unknown):
            return None
        drifted = self._compared(view, view.nodes)
        fresh = watch.observe(drifted.found, view.nodes.as_of)
        if fresh and not is_reported(
            words := decide.describe_drift(fresh), workers.last.conditions
        ):
            note = words[:1].upper() + words[1:]
            self._events.warning(source.object, Event.NODES_DRIFTED, note, "Observe")
        found = watch.found
        if found is None:
            return None
        due = watch.due(self._client.clock.monotonic())
        if due and connection is not None and connection.client is not None and chosen == "Revert":
            await self._revert(source, view, connection, connection.client, watch, due)
        elif due and chosen == "Adopt":
            await self._adopt(source, watch, drifted)
        if not found:
            return []
        acts = chosen != "Report"
        why = next(filter(None, (watch.left(name) for name in sorted(found))), "") if acts else ""
        return [with_reason(decide.describe_drift(found), why)]

    def _compared(self, view: WorkerSetView, nodes: Known[Mapping[str, Node]]) -> NodeDrift:
        """Thousands of nodes are compared once for each answer of slurmctld."""
        state = self._states.of(view.workers)
        when = (nodes.as_of, view.workers.metadata.generation)
        last = state.compared
        if last is None or last[0] != when:
            found = decide.drift(view.workers, view.pods, nodes.value, view.revisions.parameters)
            last = state.compared = when, found
        return last[1]

    async def _revert(
        self,
        source: WorkerSource,
        view: WorkerSetView,
        connection: SlurmConnection,
        client: Slurmrestd,
        watch: Watch,
        due: Iterable[str],
    ) -> None:
        gate, done = asyncio.Semaphore(AT_ONCE), list[str]()
        found = watch.found or {}

        async def one(name: str) -> None:
            async with gate:
                why = await _put_back(view.workers, client, name)
            watch.tried(name, self._client.clock.monotonic(), why and f"not put back: {why}")
            if not why:
                done.append(name)

        await asyncio.gather(*map(one, due))
        if done:
            part: Found = {name: found[name] for name in sorted(done)}
            note = f"Put back what was {decide.describe_drift(part)}"
            self._events.normal(source.object, Event.NODES_REVERTED, note, "Revert")
        await connection.mirror.poll()

    async def _adopt(self, source: WorkerSource, watch: Watch, drifted: NodeDrift) -> None:
        text, why = decide.adopted(source.workers, drifted)
        patch = source.parameters_patch(text) if not why else {}
        if not patch and not why:
            why = f"the {source.workers.kind} has no field for them: choose Revert"
        if not why:
            refused = await adopt_into_spec(self._client, source.resource, source.object, patch)
            if refused is None:
                return
            why = refused
        for name in drifted.found:
            watch.tried(name, self._client.clock.monotonic(), why and f"not adopted: {why}")
        if not why:
            note = f"Declared as it was {decide.describe_drift(drifted.found)}"
            self._events.normal(source.object, Event.NODES_ADOPTED, note, "Adopt")


async def _put_back(workers: WorkerSet, client: Slurmrestd, name: str) -> str:
    """Give one node its declared parameters; why that is not possible, or nothing."""
    try:
        node = await client.node(name)
        wanted = decide.desired_parameters(workers, node)
        features = sorted(wanted.features) if wanted.features != frozenset(node.features) else None
        await client.update_node(
            name, features=features, active_features=features, weight=wanted.weight
        )
    except SlurmError as error:
        return str(error)
    return ""
