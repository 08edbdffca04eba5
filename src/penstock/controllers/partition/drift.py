"""Drift of partitions: reports it once, and reverts or adopts it as chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from penstock.api.penstock.partition import Partition
from penstock.api.registry import resource_of
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NodeSet
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.partition.changes import PartitionChanges
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.signals import PARTITION_DRIFT, PARTITIONS_POLLED
from penstock.controllers.runtime.slurm_connections import SlurmConnection, SlurmConnections
from penstock.controllers.runtime.spec_adoption import adopt_into_spec
from penstock.decide.drift import CONFIRM_S, Choice, Found, Watch, choice, is_reported, with_reason
from penstock.decide.partition.drift_message import describe_drift
from penstock.kube import Client, Recorder
from penstock.kube.runtime.declaration import Signals
from penstock.kube.runtime.state import StateByUid
from penstock.render.config.content import content_hash
from penstock.render.slinky.config.config_maps import mounted
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.hostlist import HostListError
from penstock.slurm.known import Known
from penstock.slurm.mirror.partitions import Records
from penstock.slurm.partition.adoption import Sets, into_extra_conf, into_nodeset
from penstock.slurm.partition.comparison import drifts
from penstock.slurm.partition.declaration import ALL, Adoption, Difference, partition_lines
from penstock.slurm.state import Node
from penstock.translate.penstock.adopted_spec import into_partition

Owner: TypeAlias = Controller | NodeSet | Partition
"""Kinds that declare a partition; a Controller also has those that no object declares."""


@dataclass(slots=True)
class _State:
    watch: Watch | None = None
    """Differences of the partitions; None while slurmctld was not asked for them."""


class PartitionDrift:
    """Observes the partitions of all clusters. A signal reports changed differences."""

    def __init__(
        self,
        client: Client,
        clusters: SlinkyClusters,
        connections: SlurmConnections,
        changes: PartitionChanges[Controller, ClusterInputs],
        signals: Signals,
        recorder: Recorder,
    ) -> None:
        self._client = client
        self._caches = clusters.caches
        self._clusters = clusters
        self._connections = connections
        self._changes = changes
        self._signals = signals
        self._recorder = recorder
        self._states = StateByUid(clusters.caches.controllers, _State)
        changes.calls.adopts = self._adopts
        signals.on(PARTITIONS_POLLED, lambda key, _: self.compare(key))

    def compare(self, key: str) -> None:
        """Compare the partitions that slurmctld returned with their declarations."""
        controller, link = self._caches.controllers.get(key), self._connections.get(key)
        if controller is None or link is None:
            return
        if controller.spec.external:
            # No object here declares the partitions of an external slurmctld.
            self._states.of(controller).watch = None
            return
        if not isinstance(link.partitions.records, Known):
            return
        state = self._states.of(controller)
        watch = state.watch = state.watch or Watch()
        nodes = link.mirror.snapshot.nodes
        as_of = link.partitions.records.as_of
        if isinstance(nodes, Known):
            as_of = min(as_of, nodes.as_of)
        before = watch.found
        fresh = watch.observe(self._found(controller, link), as_of)
        if watch.waits:
            self._client.clock.call_later(CONFIRM_S, link.partitions.poll_soon)
        for name, differences in fresh.items():
            self._emit(controller, name, differences)
        if watch.found != before or watch.due(self._client.clock.monotonic()):
            self._signals.emit(PARTITION_DRIFT, key)

    def _events(self, owner: Owner) -> Events:
        return Events(self._recorder, resource_of(owner))

    def rejected(self, controller: Controller) -> Mapping[str, str]:
        """Return, by partition, the words with which slurmctld rejects its declaration."""
        return self._changes.rejections(controller)

    async def resolve(
        self, owner: Owner, cluster: ClusterInputs, chosen: Choice
    ) -> list[str] | None:
        """Revert or adopt the drift of an object's partitions; return the rest as messages.

        None while the drift is unknown. Raises KubeError.
        """
        key = cluster.controller.metadata.key
        watch, link = self._states.of(cluster.controller).watch, self._connections.get(key)
        found = watch.found if watch is not None else None
        if watch is None or found is None or cluster.controller.spec.external:
            return None
        own = {n: d for n, d in found.items() if _same(self._owner(cluster.controller, n), owner)}
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
        self, owner: Owner, cluster: ClusterInputs, link: SlurmConnection, watch: Watch, due: Found
    ) -> None:
        events = self._events(owner)
        for name, differences in due.items():
            why = await self._changes.calls.revert(cluster, link, name, differences)
            watch.tried(name, self._client.clock.monotonic(), f"not put back: {why}" if why else "")
            if not why:
                note = f"Put back: {describe_drift(name, differences)}"
                events.normal(owner, "PartitionReverted", note, "Revert")

    async def _adopt(
        self, owner: Owner, cluster: ClusterInputs, link: SlurmConnection, watch: Watch, due: Found
    ) -> None:
        adoption = self._adoption(owner, cluster, link, due)
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
                self._events(owner).normal(owner, "PartitionAdopted", note, "Adopt")

    def _adoption(
        self, owner: Owner, cluster: ClusterInputs, link: SlurmConnection, due: Found
    ) -> Adoption:
        match owner:
            case Partition():
                return into_partition(due)
            case NodeSet():
                partition = owner.spec.partition
                return into_nodeset(partition.config if partition else "", due)
            case Controller():
                records = link.partitions.records
                live: Records = records.value if isinstance(records, Known) else {}
                sets = _sets(cluster, link)
                return into_extra_conf(owner.spec.extra_conf, due, live, sets)

    def _emit(self, controller: Controller, name: str, differences: tuple[Difference, ...]) -> None:
        owner = self._owner(controller, name)
        words = describe_drift(name, differences)
        if not is_reported(words, owner.status.conditions):
            note = words[:1].upper() + words[1:]
            self._events(owner).warning(owner, "PartitionDrifted", note, "Observe")

    def _owner(self, controller: Controller, name: str) -> Owner:
        """Return the object that declares a partition: extraConf's line is the last, and counts."""
        key = controller.metadata.key
        if name in partition_lines(controller.spec.extra_conf):
            return controller
        for one in self._caches.nodesets_of.get(key):
            own = one.spec.partition is not None and one.spec.partition.enabled
            if own and names.partition_name(one) == name:
                return one
        named = [p for p in self._caches.partitions_of.get(key) if p.slurm_name == name]
        living = [one for one in named if not one.metadata.deleting]
        by_age = sorted(
            living, key=lambda p: (p.metadata.creation_timestamp or "", p.metadata.name)
        )
        return by_age[0] if by_age else controller

    def _adopts(self, key: str, name: str) -> bool:
        controller = self._caches.controllers.get(key)
        if controller is None:
            return False
        owner = self._owner(controller, name)
        if isinstance(owner, Partition):
            return owner.spec.drift == "Adopt"
        return choice(owner.metadata.annotations)[0] == "Adopt"

    def _found(self, controller: Controller, link: SlurmConnection) -> Found | None:
        """Return the differences; None while slurmctld does not run with the startup file.

        Partitions with a change of ours on its way are left out.
        """
        text, data = self._clusters.slurm_conf(controller), self._clusters.real_config(controller)
        coming = self._changes.under_way(controller)
        records, nodes = link.partitions.records, link.mirror.snapshot.nodes
        if text is None or data is None or coming is None or not isinstance(records, Known):
            return None
        cluster = self._clusters.cluster(controller)
        if controller.status.effective_config_hash != content_hash(mounted(cluster, data)):
            return None
        there = nodes.value if isinstance(nodes, Known) else None
        try:
            found = drifts(text, records.value, there, self._changes.calls.members(cluster, link))
        except HostListError:
            return None
        return {name: many for name, many in found.items() if name not in coming}


def _same(one: Owner, other: Owner) -> bool:
    return one.metadata.uid == other.metadata.uid


def _sets(cluster: ClusterInputs, link: SlurmConnection) -> Sets:
    """The node sets of NodeSets, and ALL, with the nodes that they have now."""
    nodes = link.mirror.snapshot.nodes
    there: Mapping[str, Node] = nodes.value if isinstance(nodes, Known) else {}
    found: dict[str, frozenset[str]] = {ALL: frozenset(there)}
    for one in cluster.nodesets:
        name = names.partition_name(one)
        found[name] = frozenset(n for n, node in there.items() if name in node.features)
    return found
