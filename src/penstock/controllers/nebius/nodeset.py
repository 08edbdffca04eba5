"""NodeSet of `slurm.nebius.ai`: the worker pods of a SlurmCluster and their Slurm nodes."""

from __future__ import annotations

from msgspec.structs import replace

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import (
    CLAIMS,
    CONFIG_MAPS,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    Node,
    PersistentVolumeClaim,
    Pod,
)
from penstock.api.nebius import labels
from penstock.api.nebius.advanced_stateful_set import ADVANCED_STATEFUL_SETS
from penstock.api.nebius.nodeset import NODE_SETS, NodeSet
from penstock.api.nebius.power_state import POWER_STATES
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.catalog.reasons.power import PowerReason
from penstock.controllers.auth.rejected_munge_key import RejectedMungeKeyDetector
from penstock.controllers.nebius.cluster_waiting import jail_wait
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.sssd import node_sets_using
from penstock.controllers.nebius.worker_adoption import REQUEUE_S, WorkerAdoption
from penstock.controllers.nebius.worker_roots import WorkerRoots
from penstock.controllers.nebius.worker_source import ClusterWorkers
from penstock.controllers.nodeset.engine import WorkerSetEngine, node_matters
from penstock.controllers.observed.nebius_caches import NODE_SETS_BY_CLUSTER, NebiusCaches
from penstock.controllers.observed.watching import PODS_BY_NODE, indexed, own_key, owner_of
from penstock.controllers.runtime.reconciler import StatusWriter
from penstock.controllers.runtime.report import invalid
from penstock.controllers.runtime.signals import SLURM
from penstock.controllers.workers.caches import WorkerCaches, own_stems, stems
from penstock.kube import Index, Result
from penstock.kube.runtime.declaration import IndexBy, Lookup, Signal, Watch
from penstock.translate.nebius.availability import OF_THE_ORIGINAL, node_set_parts
from penstock.translate.nebius.worker_counts import versions
from penstock.translate.nebius.worker_set import node_set_status


def node_set_of(pvc: PersistentVolumeClaim, _: Lookup | None = None) -> list[str]:
    """Key of the NodeSet whose worker has a PVC, by its labels."""
    meta = pvc.metadata
    name = meta.labels.get(labels.NODE_SET)
    return [f"{meta.namespace}/{name}"] if name else []


def node_set_of_orphan(pod: Pod, _: Lookup) -> list[str]:
    """Key of the NodeSet that a worker pod without a controlling owner is of, by its labels."""
    meta = pod.metadata
    name = meta.labels.get(labels.NODE_SET)
    return [f"{meta.namespace}/{name}"] if name and meta.controller is None else []


def node_sets_on_node(node: Node, lookup: Lookup) -> list[str]:
    """Keys of the NodeSets with a pod on a Kubernetes node."""
    owners, pods = owner_of(NODE_SETS), lookup.by(PODS_BY_NODE, node.metadata.name)
    return [key for pod in pods for key in owners(pod, lookup)]


def node_sets_of(key: str, lookup: Lookup) -> list[str]:
    """For signals: the NodeSets of a SlurmCluster."""
    return [one.metadata.key for one in lookup.by(NODE_SETS_BY_CLUSTER, key)]


PVCS_BY_NODE_SET = IndexBy(CLAIMS, node_set_of)
_PODS_BY_STEM = IndexBy(PODS, stems)
_PODS_BY_OWN_STEM = IndexBy(PODS, own_stems)


class NodeSetReconciler(StatusWriter[NodeSet]):
    """Brings NodeSets to their spec, and ends deleted ones without losing a job."""

    name = "slurmcluster-nodeset"
    resource = NODE_SETS
    watches = (
        Watch(NODE_SETS, own_key),
        Watch(SLURM_CLUSTERS, indexed(NODE_SETS_BY_CLUSTER, own_key)),
        Watch(POWER_STATES, own_key),
        Watch(PODS, owner_of(NODE_SETS)),
        # One that another operator made, once nobody controls it.
        Watch(PODS, node_set_of_orphan),
        Watch(ADVANCED_STATEFUL_SETS, owner_of(NODE_SETS)),
        Watch(NODES, node_sets_on_node, node_matters),
        Watch(CLAIMS, node_set_of),
        Watch(SERVICES, owner_of(NODE_SETS)),
        Watch(SECRETS, node_sets_using),
        Watch(CONFIG_MAPS, node_sets_using),
    )
    signals = (Signal(SLURM, node_sets_of),)

    def __init__(self, context: NebiusContext) -> None:
        super().__init__(context)
        self._context = context
        self._keys = RejectedMungeKeyDetector(context, NODE_SETS)
        self._roots = WorkerRoots(context, NODE_SETS)
        caches = worker_caches(context.caches, context.caches.store.index(PVCS_BY_NODE_SET))
        self._engine = WorkerSetEngine(context, NODE_SETS, caches, self.events, context.connections)
        self._adoption = WorkerAdoption(context, caches, self.events)

    def outdated(self, obj: NodeSet) -> frozenset[str]:
        """Those of the original, and that about roots while there are none."""
        return OF_THE_ORIGINAL | self._roots.outdated(obj)

    async def reconcile(self, key: str) -> Result:
        """Reconcile one NodeSet; a deleted one is drained before it is gone."""
        node_set = self._context.caches.node_sets.get(key)
        if node_set is None:
            return Result()
        if self._waits_for_power_state(node_set):
            words = f"There is no NodeSetPowerState {node_set.metadata.name} of this NodeSet yet"
            waiting = Finding(None, PowerReason.CREATING, words)
            await self.write(node_set, [*invalid(node_set), waiting], node_set.status)
            return Result()
        cluster = self._context.caches.cluster_of(node_set)
        source = ClusterWorkers(
            self._context,
            self.events,
            NODE_SETS,
            node_set,
            self._context.clusters.worker_set(node_set),
            cluster,
            jail_wait(cluster),
            self._keys,
            self._roots,
        )
        if (waiting := await self._adoption.run(source)) is not None:
            await self.write(node_set, [waiting], node_set.status)
            return Result(requeue_after=REQUEUE_S)
        outcome = await self._engine.run(source)
        if outcome.status is not None:
            deleting = node_set.metadata.deleting
            phase, parts = node_set_parts(outcome.status, deleting=deleting)
            # Without the SlurmCluster the revision is still that of the last status.
            counts, of = node_set.status.workers, versions(node_set.metadata)
            if cluster is not None:
                of = versions(node_set.metadata, cluster.metadata)
            elif counts is not None:
                of = counts.template_of
            found = node_set_status(node_set.status, outcome.status, of)
            status = replace(found, phase=phase)
            await self.write(node_set, [*outcome.findings, *parts], status)
        if outcome.rejected is not None:
            raise outcome.rejected
        return Result(requeue_after=outcome.requeue_after)

    def _waits_for_power_state(self, node_set: NodeSet) -> bool:
        """Without it no node would be active, and all workers would go."""
        if not node_set.spec.ephemeral_nodes or node_set.metadata.deleting:
            return False
        return self._context.caches.power_state_of(node_set) is None


def worker_caches(caches: NebiusCaches, pvcs: Index[PersistentVolumeClaim]) -> WorkerCaches:
    """Where workers of this API are found; `pvcs` by `namespace/name` of who declares them."""
    return WorkerCaches(
        pods=caches.pods,
        pods_of=caches.pods_of,
        pods_named=caches.store.index(_PODS_BY_STEM),
        own_pods_named=caches.store.index(_PODS_BY_OWN_STEM),
        pvcs=caches.claims,
        pvcs_of=pvcs,
        nodes=caches.nodes,
        revisions_of=caches.revisions_of,
    )


def cluster_of_worker(pvc: PersistentVolumeClaim, _: Lookup | None = None) -> list[str]:
    """Key of the SlurmCluster whose own worker has a PVC, by its labels."""
    meta = pvc.metadata
    if meta.labels.get(app_labels.APP_COMPONENT) != "worker":
        return []
    return [f"{meta.namespace}/{meta.labels.get(app_labels.APP_INSTANCE, '')}"]


PVCS_BY_CLUSTER = IndexBy(CLAIMS, cluster_of_worker)
