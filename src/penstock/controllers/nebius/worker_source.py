"""The workers of a NodeSet and of a SlurmCluster itself, as the engine leads them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import ControllerRevision
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.nebius import names
from penstock.api.nebius.jail_rules import node_set_jail_problem
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.catalog.reasons.jail import JailReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.auth.rejected_munge_key import RejectedMungeKeyDetector
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.sssd import SssdFileReader
from penstock.controllers.nebius.worker_roots import WorkerRoots
from penstock.controllers.runtime.reconciler import soonest
from penstock.controllers.runtime.report import Events, invalid
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.controllers.workers.caches import owner_of
from penstock.controllers.workers.source import WorkerSource
from penstock.decide.drift import Choice
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.model.recorded_revision import RecordedRevision
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_slot import WorkerSlot
from penstock.render.nebius.cluster import file_maps, services
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.worker import pod as render
from penstock.render.nebius.worker import revision as revisions
from penstock.translate.nebius import recorded_spec
from penstock.translate.nebius.node_words import adopted_node_config


class ClusterWorkers(WorkerSource):
    """The workers of one version of a NodeSet or SlurmCluster, which is `declared_by`.

    `cluster` is their SlurmCluster if it exists. `waiting` is why no pod can be created yet.
    """

    def __init__(
        self,
        context: NebiusContext,
        events: Events,
        resource: Resource[Any],
        declared_by: NodeSet | SlurmCluster,
        workers: WorkerSet,
        cluster: SlurmCluster | None,
        waiting: Finding | None,
        keys: RejectedMungeKeyDetector,
        roots: WorkerRoots,
    ) -> None:
        self._context = context
        self._events = events
        self._declared_by = declared_by
        self._cluster = cluster
        self._waiting = waiting
        self._keys = keys
        self._sssd = SssdFileReader(context)
        self._roots = roots
        self.object: KubeObject = declared_by
        self.resource = resource
        self.workers = workers
        self.problems = invalid(declared_by)
        self.is_cluster_ready = cluster is not None and not cluster.metadata.deleting
        # Parts of a template are declared by the SlurmCluster.
        self.is_template_known = cluster is not None

    @cached_property
    def _inputs(self) -> ClusterInputs:
        if self._cluster is None:
            raise TypeError(f"the SlurmCluster of {self.object.metadata.name} does not exist")
        return self._context.clusters.inputs(self._cluster)

    def has_newer(self) -> bool:
        """Whether the object's spec, or its active nodes, changed since it was read."""
        meta = self.object.metadata
        now = self._context.caches.store.get(self.resource, meta.key)
        before = meta.uid, meta.generation
        if now is not None and (now.metadata.uid, now.metadata.generation) != before:
            return True
        of = self._declared_by
        if not isinstance(of, NodeSet) or not of.spec.ephemeral_nodes:
            return False
        return self._context.clusters.worker_set(of).powered != self.workers.powered

    def cluster_state(self) -> ControllerState:
        """What the API server has of its SlurmCluster.

        One that declares workers itself exists with its slurmctld until they are drained.
        """
        if self._cluster is None:
            return ControllerState.ABSENT
        if self._declared_by is self._cluster:
            return ControllerState.PRESENT
        deleting = self._cluster.metadata.deleting
        return ControllerState.DELETING if deleting else ControllerState.PRESENT

    def connection(self) -> SlurmConnection | None:
        """The connection of its SlurmCluster."""
        space = self.object.metadata.namespace
        return self._context.connections.get(f"{space}/{self.workers.cluster}")

    def creation_blocked(self) -> Finding | None:
        """Its own fault, the absent SlurmCluster, or what that waits for."""
        if self.problems:
            return self.problems[0]
        if self._cluster is None:
            name = self.workers.cluster
            words = (
                f"There is no SlurmCluster {name} in this namespace. Create it, or correct "
                "spec.clusterName"
            )
            if not name:
                words = "spec.clusterName is empty. Name the SlurmCluster of these workers"
            return Finding(None, ObjectReason.SLURM_CLUSTER_NOT_FOUND, words)
        if isinstance(self._declared_by, NodeSet):
            words = node_set_jail_problem(self._declared_by, self._cluster)
            if words:
                return Finding(False, JailReason.MODE_CONFLICT, words)
            return self._waiting or self._sssd.absent(self._declared_by)
        return self._waiting

    def pod(self, slot: WorkerSlot) -> Json:
        """The pod of an ordinal."""
        return render.pod(self._inputs, self.workers, slot, revision_hash=self.revision().hash)

    def pvcs(self, slot: WorkerSlot) -> Sequence[Json]:
        """By its claim templates."""
        return render.pvcs(self._inputs, self.workers, slot)

    async def apply_shared_objects(self) -> None:
        """The Service and files of a NodeSet. Raises KubeError."""
        if isinstance(self._declared_by, NodeSet):
            name = self.workers.cluster
            of = self._declared_by
            await self._sssd.create_for(of, name, self._events)
            found = [services.node_set(name, of), file_maps.node_set(name, of)]
            await self._context.objects.apply(self.object, self._events, found)

    @cached_property
    def _revision(self) -> RecordedRevision:
        if self._cluster is not None:
            return revisions.declared_revision(self._inputs, self.workers)
        last = self.workers.last.revision
        records = self._context.caches.revisions_of.get(owner_of(self.workers))
        found = (self.recorded(one) for one in records)
        return next((one for one in found if one.hash == last), _unrecorded(last))

    def revision(self) -> RecordedRevision:
        """By the declared fields that reach a pod; without a SlurmCluster the last one."""
        return self._revision

    def recorded(self, record: ControllerRevision) -> RecordedRevision:
        """What a ControllerRevision records."""
        return revisions.recorded_revision(self.workers, record)

    def revision_manifest(self, number: int) -> Json:
        """The ControllerRevision of the current template."""
        of = revisions.revision(self._inputs, self.workers)
        return revisions.controller_revision(self._inputs, self.workers, of, number)

    def rollback_patch(self, live: Json, value: str, spec: Json | None) -> list[Json]:
        """For the fields that a revision covers."""
        return recorded_spec.patch(self._declared_by, live, value, spec)

    def parameters_patch(self, parameters: str) -> Json:
        """In nodeConfig of a NodeSet. A SlurmCluster has no field for its own workers."""
        if not isinstance(self._declared_by, NodeSet):
            return {}
        return adopted_node_config(self._declared_by.spec, parameters)

    async def partition_drift(self, chosen: Choice) -> list[str] | None:
        """Of the partitions of a SlurmCluster, with the drift of its own workers."""
        if self._cluster is None or self._declared_by is not self._cluster:
            return []
        inputs = self._context.clusters.config(self._cluster)
        return await self._context.drift.resolve(self._cluster, inputs, chosen)

    async def findings(
        self, view: WorkerSetView, connection: SlurmConnection | None
    ) -> list[Finding]:
        """A worker with another key, files of sssd, roots that differ. Raises KubeError."""
        del connection
        if self._cluster is None:
            return []
        wanted = names.auth_key(self._cluster)
        found = await self._keys.findings(self.object, view.pods, view.nodes, wanted)
        if isinstance(self._declared_by, NodeSet):
            found = [*found, *self._sssd.of_node_set(self._declared_by)]
        if self._has_own_roots():
            found = [*found, *await self._roots.findings(self.object, view.pods)]
        return found

    def requeue_after(self, view: WorkerSetView) -> float | None:
        """When logs of workers are to be read again."""
        of_keys = self._keys.requeue_after(self.object, view.pods, view.nodes)
        if not self._has_own_roots():
            return of_keys
        return soonest(of_keys, self._roots.requeue_after(self.object, view.pods))

    def _has_own_roots(self) -> bool:
        return self._cluster is not None and self._cluster.spec.has_own_roots


def _unrecorded(revision_hash: str) -> RecordedRevision:
    return RecordedRevision(
        name="",
        uid="",
        number=0,
        hash=revision_hash,
        equal_hashes=(),
        parameters="",
        fixed_form=b"",
        read_form=bytes,
        read_spec=lambda: None,
    )
