"""The workers of a NodeSet, as the engine leads them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import BUDGETS, ControllerRevision, Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.controllers.auth.rejected_key import RejectedKeyDetector
from penstock.controllers.observed.members import cluster_keys
from penstock.controllers.partition.context import ClusterContext
from penstock.controllers.runtime.report import Events, invalid
from penstock.controllers.runtime.slurm_connections import (
    UNCONNECTED,
    SlurmConnection,
)
from penstock.controllers.slinky import worker_findings
from penstock.controllers.slinky.prerequisites import require_cluster, sssd_conf_hash
from penstock.controllers.workers.source import WorkerSource
from penstock.decide.advice import cgroups
from penstock.decide.drift import Choice
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.decide.partition.conditions import rejected_finding
from penstock.kube import NotFoundError
from penstock.model.recorded_revision import RecordedRevision
from penstock.model.worker_slot import WorkerSlot
from penstock.model.worker_status import ExternalSlurm
from penstock.render.slinky.config.config_maps import cgroup_conf
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset import revision_meaning, worker_pod
from penstock.slurm.known import Unknown
from penstock.translate.slinky import recorded_spec
from penstock.translate.slinky.worker_set import worker_set


@dataclass(slots=True)
class NodeSetState:
    """What outlives one reconcile of a NodeSet."""

    shares_cgroup_conf: bool = False
    """Whether hosts outside Kubernetes use its cgroup.conf as well."""


class NodeSetServices:
    """What the sources of all NodeSets have in common."""

    def __init__(self, context: ClusterContext, events: Events) -> None:
        self.client = context.client
        self.caches = context.caches
        self.secrets = context.secrets
        self.clusters = context.clusters
        self.objects = context.objects
        self.events = events
        self.connections = context.connections
        self.endpoints = context.endpoints
        self.drift = context.drift
        self.keys = RejectedKeyDetector(context, NODESETS)
        self.states = context.states(NODESETS, NodeSetState)


class NodeSetSource(WorkerSource):
    """The workers of one version of a NodeSet."""

    def __init__(self, nodeset: NodeSet, services: NodeSetServices) -> None:
        self._nodeset = nodeset
        self._services = services
        self._caches = services.caches
        self._secrets = services.secrets
        self._cluster = require_cluster(services.clusters, nodeset)
        self.object = nodeset
        self.resource = NODESETS
        self.workers = worker_set(nodeset)
        self.problems = invalid(nodeset)
        self.is_cluster_ready = isinstance(self._cluster, ClusterInputs)

    @property
    def _ready_cluster(self) -> ClusterInputs:
        if not isinstance(self._cluster, ClusterInputs):
            raise TypeError(f"the cluster of NodeSet {self._nodeset.metadata.name} is not ready")
        return self._cluster

    def has_newer(self) -> bool:
        """Whether the NodeSet's spec changed since it was read."""
        meta, now = self._nodeset.metadata, self._caches.nodesets.get(self._nodeset.metadata.key)
        before = meta.uid, meta.generation
        return now is not None and (now.metadata.uid, now.metadata.generation) != before

    def cluster_state(self) -> ControllerState:
        """What the API server has of its Controller."""
        controller = self._caches.controller_of(self._nodeset)
        if controller is None:
            return ControllerState.ABSENT
        if controller.metadata.deleting:
            return ControllerState.DELETING
        return ControllerState.PRESENT

    def connection(self) -> SlurmConnection | None:
        """The connection of its Controller."""
        return self._services.connections.first(cluster_keys(self._nodeset))

    def external(self) -> ExternalSlurm | None:
        """How an external slurmctld is asked, as the status has it."""
        return self._services.endpoints.external(self._nodeset)

    def creation_blocked(self) -> Finding | None:
        """The first fault, or the first object that is missing."""
        needed = (*self.problems, self._cluster, self._sssd_conf_hash())
        return next((one for one in needed if isinstance(one, Finding)), None)

    def _sssd_conf_hash(self) -> str | Finding:
        meta, ref = self._nodeset.metadata, self._nodeset.spec.workers_sssd_conf_ref
        return sssd_conf_hash(self._secrets, meta.namespace, ref)

    def pod(self, slot: WorkerSlot) -> Json:
        """The pod of an ordinal, or of a Kubernetes node in DaemonSet mode."""
        found = self._sssd_conf_hash()
        sssd = found if isinstance(found, str) else ""
        revision = self._revision.hash
        if slot.ordinal is None:
            return worker_pod.node_pod(
                self._ready_cluster,
                self._nodeset,
                slot.pod,
                slot.slurm_node,
                slot.node,
                revision_hash=revision,
                sssd_conf_hash=sssd,
            )
        return worker_pod.pod(
            self._ready_cluster,
            self._nodeset,
            slot.ordinal,
            revision_hash=revision,
            kubernetes_node=slot.node,
            sssd_conf_hash=sssd,
        )

    def pvcs(self, slot: WorkerSlot) -> Sequence[Json]:
        """By its volumeClaimTemplates."""
        if slot.ordinal is None:
            return worker_pod.node_pvcs(self._nodeset, slot.slurm_node)
        return worker_pod.worker_pvcs(self._nodeset, slot.ordinal)

    async def apply_shared_objects(self) -> None:
        """Service, budget and files. Raises KubeError."""
        objects, events = self._services.objects, self._services.events
        shared = worker_pod.shared_objects(self._ready_cluster)
        for one in shared:
            await self._remove_other_limit(one)
        await objects.apply(self._nodeset, events, shared)
        own = worker_pod.objects(self._nodeset)
        await objects.apply(self._nodeset, events, own)
        if not own:
            name = names.worker_ssh_config(self._nodeset)
            await objects.remove(self._nodeset, events, "ConfigMap", name)

    async def _remove_other_limit(self, manifest: Json) -> None:
        """Take the field out of a budget that is not asked for, whoever has written it.

        It may have one of the two, and which one changes with the scaling modes. That of
        slurm-operator is not ours to take back by an apply.
        """
        meta = manifest["metadata"]
        live = self._caches.budgets.get(f"{meta['namespace']}/{meta['name']}")
        if manifest["kind"] != "PodDisruptionBudget" or live is None or live.metadata.deleting:
            return
        wanted: Json = manifest["spec"]
        other = {"minAvailable", "maxUnavailable"} & live.spec.keys() - wanted.keys()
        if not other:
            return
        spec = {**wanted, **dict.fromkeys(other)}
        body = {"metadata": {"uid": live.metadata.uid}, "spec": spec}
        with contextlib.suppress(NotFoundError):
            client = self._services.client
            await client.patch(BUDGETS, meta["namespace"], meta["name"], body)

    @cached_property
    def _revision(self) -> RecordedRevision:
        return revision_meaning.declared_revision(self._nodeset)

    def revision(self) -> RecordedRevision:
        """By its template and the other fields that a pod is made from."""
        return self._revision

    def recorded(self, record: ControllerRevision) -> RecordedRevision:
        """What our or slurm-operator's ControllerRevision records."""
        return revision_meaning.recorded_revision(self._nodeset, record)

    def revision_manifest(self, number: int) -> Json:
        """The ControllerRevision of its template."""
        revision = worker_pod.revision(self._nodeset)
        return worker_pod.controller_revision(self._nodeset, revision, number)

    def rollback_patch(self, live: Json, value: str, spec: Json | None) -> list[Json]:
        """For the fields that a revision covers."""
        return recorded_spec.patch(self._nodeset, live, value, spec)

    def parameters_patch(self, parameters: str) -> Json:
        """They are declared in extraConf."""
        return {"extraConf": parameters or None}

    def partition_findings(self) -> list[Finding]:
        """That slurmctld rejects its own partition, in slurmctld's words."""
        rejected = self._services.drift.rejected(self._ready_cluster.controller)
        words = rejected.get(names.partition_name(self._nodeset), "")
        return (
            [rejected_finding(words)]
            if words and worker_findings.has_partition(self._nodeset)
            else []
        )

    async def partition_drift(self, chosen: Choice) -> list[str] | None:
        """Of its own partition, if it has one. Raises KubeError."""
        if not worker_findings.has_partition(self._nodeset):
            return []
        return await self._services.drift.resolve(self._nodeset, self._ready_cluster, chosen)

    async def findings(
        self, view: WorkerSetView, connection: SlurmConnection | None
    ) -> list[Finding]:
        """Advice, and what logs of workers show. Raises KubeError."""
        cluster = self._ready_cluster
        found = worker_findings.findings(self._nodeset, view, cluster, connection)
        found += self._cgroups(cluster, connection)
        if not cluster.controller.spec.external:
            keys = self._services.keys
            found += await keys.findings(self._nodeset, cluster, _not_ready(view))
        return found

    def requeue_after(self, view: WorkerSetView) -> float | None:
        """When logs of workers are to be read again."""
        return self._services.keys.requeue_after(self._nodeset, _not_ready(view))

    def _cgroups(self, cluster: ClusterInputs, connection: SlurmConnection | None) -> list[Finding]:
        """Return a warning about a cgroup.conf that pods share with external nodes."""
        controller, state = cluster.controller, self._services.states.of(self._nodeset)
        if controller.spec.external:
            nodes = connection.mirror.snapshot.nodes if connection is not None else UNCONNECTED
            if isinstance(nodes, Unknown):
                # The condition stays as it is.
                state.shares_cgroup_conf = True
                return []
            beside = self._caches.nodesets_of.get(controller.metadata.key)
            pods = (pod for one in beside for pod in self._caches.workers_of(one))
            found = cgroups.external(
                cgroups.other_nodes(self.workers.marks.comment, nodes.value, pods)
            )
        else:
            found = cgroups.shared(controller.spec.extra_conf, cgroup_conf(cluster))
        state.shares_cgroup_conf = found is not None
        return [found] if found is not None else []


def _not_ready(view: WorkerSetView) -> list[Pod]:
    return [pod for pod in view.pods if not pod.ready]
