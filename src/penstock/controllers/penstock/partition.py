"""Partition: a Slurm partition over any nodes of a cluster.

Its Controller's reconcile changes the partition in Slurm: see `controllers.partition.changes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from penstock.api.kubernetes.conditions import READY, Finding, find
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.penstock.partition import PARTITIONS, Partition, PartitionStatus
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.nodeset import NODESETS
from penstock.catalog.reasons.partition import PartitionReason
from penstock.controllers.observed.members import PARTITIONS_BY_CLUSTER, cluster_keys, members_of
from penstock.controllers.observed.watching import indexed, own_key, spec_changed
from penstock.controllers.partition.context import ClusterContext
from penstock.controllers.runtime.reconciler import Reconciler
from penstock.controllers.runtime.signals import PARTITIONS_APPLIED, PARTITIONS_POLLED
from penstock.controllers.slinky.prerequisites import require_cluster
from penstock.controllers.slinky.worker_labels import workers
from penstock.decide.drift import findings as drift_finding
from penstock.decide.partition.conditions import Live, PartitionView, findings
from penstock.kube import Result
from penstock.kube.runtime.declaration import Signal, Watch
from penstock.render.config import partition as render
from penstock.render.slinky.config.slurm_conf import slurm_conf
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.known import Fact, Known, Unknown
from penstock.slurm.mirror.partitions import Records
from penstock.slurm.mirror.snapshot import NOT_ASKED
from penstock.slurm.partition.comparison import default_partition, differences, expected_nodes
from penstock.slurm.partition.declaration import Difference, node_set, partition_lines
from penstock.slurm.state import Node
from penstock.translate.penstock.partition_spec import partition_spec

ANSWER_S = 15.0
"""Seconds that a new process waits for Slurm's first answer before it reports none."""


class PartitionReconciler(Reconciler[Partition]):
    """Sets the conditions of Partitions."""

    name = "partition"
    resource = PARTITIONS
    watches = (
        Watch(PARTITIONS, own_key),
        Watch(CONTROLLERS, indexed(PARTITIONS_BY_CLUSTER, own_key), spec_changed),
        Watch(NODESETS, indexed(PARTITIONS_BY_CLUSTER, cluster_keys), spec_changed),
        # Which of two Partitions has a name, or has it next, is decided among all of a cluster.
        Watch(PARTITIONS, indexed(PARTITIONS_BY_CLUSTER, cluster_keys), spec_changed),
    )
    signals = (
        Signal(PARTITIONS_APPLIED, members_of(PARTITIONS_BY_CLUSTER)),
        Signal(PARTITIONS_POLLED, members_of(PARTITIONS_BY_CLUSTER)),
    )

    def __init__(self, context: ClusterContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        self._clusters = context.clusters
        self._connections = context.connections
        self._changes = context.changes
        self._drift = context.drift
        self._started = self.client.clock.monotonic()

    async def reconcile(self, key: str) -> Result:
        """Reconcile one Partition, once this process has an answer of its Slurm.

        A process that has just started would report that Slurm does not answer, and the condition
        would flap.
        """
        obj = self._caches.partitions.get(key)
        early = self.client.clock.monotonic() - self._started < ANSWER_S
        if (
            obj is not None
            and early
            and obj.status.observed_generation
            and not self._has_answered(obj)
        ):
            return Result(requeue_after=1.0)
        return await super().reconcile(key)

    def _has_answered(self, obj: Partition) -> bool:
        controller = self._caches.controller_of(obj)
        link = self._connections.first(cluster_keys(obj))
        if controller is None:
            return True
        if link is None or not link.has_answered or not self._changes.has_compared(controller):
            return False
        return link.client is None or link.partitions.records != Unknown(NOT_ASKED)

    async def reconcile_object(self, obj: Partition) -> list[Finding]:
        """Compare the declared partition with slurmctld's."""
        cluster = require_cluster(self._clusters, obj)
        if isinstance(cluster, Finding):
            return [cluster]
        if cluster.controller.spec.external:
            return [
                Finding(
                    False,
                    PartitionReason.CONTROLLER_EXTERNAL,
                    "The Controller is external, so its slurm.conf "
                    "is not written here. Declare the "
                    "partition in slurm.conf where slurmctld runs",
                )
            ]
        key = cluster.controller.metadata.key
        link = self._connections.get(key)
        name = obj.slurm_name
        model, declared_here = cluster.model, partition_spec(obj)
        conflict = render.conflict(model, declared_here)
        live: Fact[Live | None] = Unknown(NOT_ASKED)
        absent: list[str] = []
        if link is not None:
            nodes = link.mirror.snapshot.nodes
            live = self._live(cluster, obj, link.partitions.records, nodes)
            if isinstance(nodes, Known):
                absent = render.absent(model, declared_here, nodes.value)
        drift = [] if conflict else await self._drift.resolve(obj, cluster, obj.spec.drift)
        settled = bool(drift) or (drift is None and self._settled(obj, cluster))
        if settled and isinstance(live, Known) and live.value is not None:
            # The differences are drift: no change of ours is on its way.
            live = Known(replace(live.value, differences=()), live.as_of)
        view = PartitionView(
            name=name,
            conflict=conflict,
            missing=tuple(render.missing(model, declared_here)),
            rejected=self._changes.rejections(cluster.controller).get(name, ""),
            live=live,
            by_file=self._changes.file_only_reason(cluster.controller),
            absent=tuple(absent),
        )
        return [*findings(view), *drift_finding(drift, obj.status.conditions, always=True)]

    def _settled(self, obj: Partition, cluster: ClusterInputs) -> bool:
        """Return whether the present declaration was in effect, so that a difference is drift."""
        ready = find(obj.status.conditions, READY)
        coming = self._changes.under_way(cluster.controller)
        return (
            ready is not None
            and ready.status == "True"
            and obj.status.observed_generation == obj.metadata.generation
            and coming is not None
            and obj.slurm_name not in coming
        )

    def status(self, obj: Partition) -> Status:
        """Return the status with slurmctld's values, the last ones while it does not answer."""
        link = self._connections.first(cluster_keys(obj))
        records: Fact[Records] = link.partitions.records if link else Unknown(NOT_ASKED)
        status = msgspec.structs.replace(obj.status, partition=obj.slurm_name)
        if isinstance(records, Unknown):
            return status
        found = records.value.get(obj.slurm_name)
        if found is None:
            return PartitionStatus(
                observed_generation=status.observed_generation,
                conditions=status.conditions,
                partition=obj.slurm_name,
            )
        return msgspec.structs.replace(
            status,
            state=",".join(found.partition.state or ()),
            nodes=found.nodes.configured,
            total_nodes=found.nodes.total,
        )

    def _live(
        self,
        cluster: ClusterInputs,
        obj: Partition,
        records: Fact[Records],
        nodes: Fact[Mapping[str, Node]],
    ) -> Fact[Live | None]:
        if isinstance(records, Unknown):
            return records
        name = obj.slurm_name
        found = records.value.get(name)
        if found is None:
            return Known(None, records.as_of)
        text = slurm_conf(cluster)
        wanted = partition_lines(text).get(name)
        differing: tuple[Difference, ...] = ()
        if wanted is not None:
            expected: frozenset[str] | None = None
            if isinstance(nodes, Known):
                kubernetes = workers(self._caches, cluster)
                members = render.members(
                    cluster.model, partition_spec(obj), nodes.value, kubernetes
                )
                expected = expected_nodes(text, name, nodes.value, {node_set(name): members})
            differing = tuple(
                one
                for one in differences(wanted, found, expected)
                if one.key != "Default" or default_partition(text) == name
            )
        state = ",".join(found.partition.state or ())
        live = Live(state, found.nodes.configured, found.nodes.total, differing)
        return Known(live, records.as_of)
