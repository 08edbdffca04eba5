"""Drift of partitions: reports it once, and reverts or adopts it as chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.registry import resource_of
from penstock.catalog.event import Event
from penstock.controllers.partition.changes import PartitionChanges
from penstock.controllers.partition.drift_source import C, DriftSource, K
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.signals import PARTITION_DRIFT, PARTITIONS_POLLED
from penstock.controllers.runtime.slurm_connections import SlurmConnection, SlurmConnections
from penstock.controllers.runtime.spec_adoption import adopt_into_spec
from penstock.decide.drift import CONFIRM_S, Choice, Found, Watch, is_reported, with_reason
from penstock.decide.partition.drift_message import describe_drift
from penstock.kube import Cache, Client, Recorder
from penstock.kube.runtime.declaration import Signals
from penstock.kube.runtime.state import StateByUid
from penstock.slurm.hostlist import HostListError
from penstock.slurm.known import Known
from penstock.slurm.mirror.partitions import Records
from penstock.slurm.partition.comparison import drifts
from penstock.slurm.partition.declaration import Difference
from penstock.slurm.state import Node


@dataclass(slots=True)
class _State:
    watch: Watch | None = None
    """Differences of the partitions; None while slurmctld was not asked for them."""
    agreed: tuple[Records, Mapping[str, Node] | None] | None = None
    """The last answer, partitions and nodes, if it agreed with the declarations."""


class PartitionDrift(Generic[K, C]):
    """Observes the partitions of all clusters. A signal reports changed differences.

    `objects` are those that declare clusters.
    """

    def __init__(
        self,
        client: Client,
        source: DriftSource[K, C],
        objects: Cache[K],
        connections: SlurmConnections,
        changes: PartitionChanges[K, C],
        signals: Signals,
        recorder: Recorder,
    ) -> None:
        self._client = client
        self._source = source
        self._connections = connections
        self._changes = changes
        self._signals = signals
        self._recorder = recorder
        self._states = StateByUid(objects, _State)
        changes.calls.adopts = self._adopts
        signals.on(PARTITIONS_POLLED, lambda key, _: self.compare(key))

    def compare(self, key: str) -> None:
        """Compare the partitions that slurmctld returned with their declarations."""
        obj, link = self._source.find(key), self._connections.peek(key)
        if obj is None or link is None:
            return
        if self._source.is_external(obj):
            self._states.of(obj).watch = self._states.of(obj).agreed = None
            return
        records, nodes = link.partitions.records, link.mirror.snapshot.nodes
        if not isinstance(records, Known):
            return
        state = self._states.of(obj)
        answer = records.value, nodes.value if isinstance(nodes, Known) else None
        if link.mirror.is_at_rest and state.agreed == answer:
            # Whatever changes a declaration, or sends it to slurmctld, ends the rest first.
            return
        watch = state.watch = state.watch or Watch()
        as_of = min(records.as_of, nodes.as_of) if isinstance(nodes, Known) else records.as_of
        before = watch.found
        found = self._found(obj, link)
        state.agreed = answer if found == {} else None
        fresh = watch.observe(found, as_of)
        if watch.waits:
            self._client.clock.call_later(CONFIRM_S, link.partitions.poll_soon)
        for name, differences in fresh.items():
            self._emit(obj, name, differences)
        if watch.found != before or watch.due(self._client.clock.monotonic()):
            self._signals.emit(PARTITION_DRIFT, key)

    def _events(self, owner: KubeObject) -> Events:
        return Events(self._recorder, resource_of(owner))

    def rejected(self, obj: KubeObject) -> Mapping[str, str]:
        """Return, by partition, the words with which slurmctld rejects its declaration."""
        return self._changes.rejections(obj)

    async def resolve(self, owner: KubeObject, cluster: C, chosen: Choice) -> list[str] | None:
        """Revert or adopt the drift of an object's partitions; return the rest as messages.

        None while the drift is unknown. Raises KubeError.
        """
        obj = self._source.object_of(cluster)
        watch, link = self._states.of(obj).watch, self._connections.get(obj.metadata.key)
        found = watch.found if watch is not None else None
        if watch is None or found is None or self._source.is_external(obj):
            return None
        own = {n: d for n, d in found.items() if _same(self._source.owner(obj, n), owner)}
        due = {name: own[name] for name in watch.due(self._client.clock.monotonic()) if name in own}
        if due and chosen == "Revert" and link is not None:
            await self._revert(owner, cluster, link, watch, due)
        elif due and chosen == "Adopt" and link is not None:
            await self._adopt(owner, cluster, link, watch, due)
        acts = chosen != "Report"
        return [
            with_reason(describe_drift(name, own[name]), watch.left(name) if acts else "")
            for name in sorted(own)
        ]

    async def _revert(
        self, owner: KubeObject, cluster: C, link: SlurmConnection, watch: Watch, due: Found
    ) -> None:
        events = self._events(owner)
        for name, differences in due.items():
            why = await self._changes.calls.revert(cluster, link, name, differences)
            watch.tried(name, self._client.clock.monotonic(), f"not put back: {why}" if why else "")
            if not why:
                note = f"Put back: {describe_drift(name, differences)}"
                events.normal(owner, Event.PARTITION_REVERTED, note, "Revert")

    async def _adopt(
        self, owner: KubeObject, cluster: C, link: SlurmConnection, watch: Watch, due: Found
    ) -> None:
        adoption = self._source.adoption(owner, cluster, link, due)
        left = dict(adoption.left)
        if adoption.patch:
            problem = await adopt_into_spec(self._client, resource_of(owner), owner, adoption.patch)
            if problem is None:
                return
            if problem:
                left |= {name: problem for name in due if name not in left}
        now = self._client.clock.monotonic()
        for name, differences in due.items():
            why = left.get(name, "")
            watch.tried(name, now, f"not adopted: {why}" if why else "")
            if not why:
                note = f"Declared as it is in Slurm: {describe_drift(name, differences)}"
                self._events(owner).normal(owner, Event.PARTITION_ADOPTED, note, "Adopt")

    def _emit(self, obj: K, name: str, differences: tuple[Difference, ...]) -> None:
        owner = self._source.owner(obj, name)
        words = describe_drift(name, differences)
        if not is_reported(words, self._source.status(owner).conditions):
            note = words[:1].upper() + words[1:]
            self._events(owner).warning(owner, Event.PARTITION_DRIFTED, note, "Observe")

    def _adopts(self, key: str, name: str) -> bool:
        obj = self._source.find(key)
        return obj is not None and self._source.choice(self._source.owner(obj, name)) == "Adopt"

    def _found(self, obj: K, link: SlurmConnection) -> Found | None:
        """Return the differences; None while slurmctld does not run with the startup file.

        Partitions with a change of ours on its way are left out.
        """
        text, coming = self._source.active_conf(obj), self._changes.under_way(obj)
        records, nodes = link.partitions.records, link.mirror.snapshot.nodes
        if text is None or coming is None or not isinstance(records, Known):
            return None
        there = nodes.value if isinstance(nodes, Known) else None
        members = self._changes.calls.members(self._source.cluster(obj), link)
        try:
            found = drifts(text, records.value, there, members)
        except HostListError:
            return None
        return {name: many for name, many in found.items() if name not in coming}


def _same(one: KubeObject, other: KubeObject) -> bool:
    return one.metadata.uid == other.metadata.uid
