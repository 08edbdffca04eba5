"""From NodeSets and a SlurmCluster's own workers to the worker sets that they declare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from penstock.api.kubernetes.meta import Json, ObjectMeta
from penstock.api.nebius import labels, names
from penstock.api.nebius.nodeset import NODE_SETS, NodeSet, NodeSetStatus
from penstock.api.nebius.slurmcluster import (
    SLURM_CLUSTERS,
    Maintenance,
    NodeFilter,
    SlurmCluster,
    SlurmClusterStatus,
)
from penstock.api.nebius.volumes import NodeVolumeMount, VolumeMount
from penstock.api.nebius.worker import WorkerNode
from penstock.model.image_sources import ImageSources
from penstock.model.worker_marks import WorkerMarks
from penstock.model.worker_names import WorkerNames
from penstock.model.worker_set import PvcPolicy, UpdatePolicy, Wording, WorkerSet
from penstock.model.worker_status import WorkerSetStatus
from penstock.translate.nebius.jail import maintenance_mode
from penstock.translate.nebius.node_words import node_words
from penstock.translate.nebius.worker_counts import last_status, worker_counts
from penstock.translate.placement import placement

_OWN = "nodeset.penstock.dev"
"""Keys that the original does not have are Penstock's own."""
_HISTORY = 10


def marks(kind: str) -> WorkerMarks:
    """Labels, annotations and prefixes of the workers of a kind.

    A drain reason that the original writes (`soperator rolling update`) is somebody else's.
    """
    return WorkerMarks(
        kind=kind,
        cordon=(f"{_OWN}/drain",),
        deadline=f"{_OWN}/deadline",
        deletion_cost="controller.kubernetes.io/pod-deletion-cost",
        protect="",
        revision=(labels.REVISION,),
        per_node="",
        per_node_value="",
        labels={labels.WORKER: labels.TRUE},
        topology="",
        features="",
        hostname="",
        cordon_reason="",
        drain_prefix="soperator: ",
        state_prefix="SlurmNodeState",
        reservation_finalizer=f"{_OWN}/reservation",
    )


OF_NODE_SETS: Final = marks(NODE_SETS.kind)
OF_CLUSTERS: Final = marks(SLURM_CLUSTERS.kind)


def node_set_workers(node_set: NodeSet, maintenance: Maintenance = "none") -> WorkerSet:
    """The workers that a NodeSet declares; `maintenance` is the mode of its SlurmCluster."""
    meta, spec, status = node_set.metadata, node_set.spec, node_set.status
    cluster, volumes = names.cluster_of(node_set), spec.slurmd.volumes
    retention = volumes.persistent_volume_claim_retention_policy
    selector = labels.node_set_selector(meta.name, cluster)
    older = spec.node_attributes
    features = (meta.name, *spec.node_config.features, *(older.features if older else ()))
    spool = volumes.spool.volume_claim_template_spec is not None
    return WorkerSet(
        api_version=NODE_SETS.api_version,
        kind=NODE_SETS.kind,
        metadata=meta,
        cluster=cluster,
        names=_names(meta.name, meta.uid),
        marks=OF_NODE_SETS,
        wording=Wording(SLURM_CLUSTERS.kind, "spec.clusterName", "spec"),
        replicas=_replicas(spec.replicas, maintenance),
        per_node=False,
        placement=placement(spec.node_selector, spec.affinity, spec.tolerations),
        host_network=False,
        pin_to_node=False,
        update=UpdatePolicy("RollingUpdate", spec.max_unavailable),
        pvcs=PvcPolicy(
            _templates((*volumes.jail_sub_mounts, *volumes.custom_volume_mounts), spool=spool),
            retention.when_deleted,
            retention.when_scaled,
        ),
        parameters=node_words(features, spec.node_config.static, spec.slurmd.resources),
        prune_missing_nodes=True,
        protect_busy_pods=False,
        min_ready_seconds=0,
        revision_history_limit=_HISTORY,
        selector=selector,
        images=_images(
            meta,
            slurmd={"image": spec.slurmd.image.reference},
            munge={"image": spec.munge.image.reference},
        ),
        chart_labels={},
        last=last_status(
            status.workers,
            generation=status.observed_generation,
            selector=status.label_selector,
            conditions=status.conditions,
        ),
    )


def cluster_workers(cluster: SlurmCluster) -> WorkerSet | None:
    """The workers that a SlurmCluster declares itself; None in the shape that has NodeSets."""
    meta, worker, status = cluster.metadata, cluster.spec.slurm_nodes.worker, cluster.status
    if worker is None:
        return None
    found = node_filter(cluster, worker.k8s_node_filter_name)
    spool = worker.volumes.spool.volume_claim_template_spec is not None
    selector = labels.selector_labels("worker", meta.name)
    return WorkerSet(
        api_version=SLURM_CLUSTERS.api_version,
        kind=SLURM_CLUSTERS.kind,
        metadata=meta,
        cluster=meta.name,
        names=_names(names.IMPLICIT_NODE_SET, meta.uid),
        marks=OF_CLUSTERS,
        wording=Wording(SLURM_CLUSTERS.kind, "metadata.name", "spec.slurmNodes.worker"),
        replicas=_replicas(worker.size or 0, cluster.spec.maintenance),
        per_node=False,
        placement=placement(found.node_selector, found.affinity, found.tolerations)
        if found is not None
        else None,
        host_network=False,
        pin_to_node=False,
        update=UpdatePolicy("RollingUpdate", worker.max_unavailable),
        pvcs=PvcPolicy(_templates(_mounts(worker), spool=spool), "Delete", "Retain"),
        parameters=node_words((names.IMPLICIT_NODE_SET,), "", worker.slurmd.resources),
        prune_missing_nodes=True,
        protect_busy_pods=False,
        min_ready_seconds=0,
        revision_history_limit=_HISTORY,
        selector=selector,
        images=_images(
            meta,
            slurmd={"image": worker.slurmd.image},
            munge={"image": worker.munge.image},
        ),
        chart_labels={},
        last=last_status(
            status.workers,
            generation=status.observed_generation,
            selector=",".join(f"{key}={selector[key]}" for key in sorted(selector)),
            conditions=status.conditions,
        ),
    )


def node_filter(cluster: SlurmCluster, name: str) -> NodeFilter | None:
    """The entry of spec.k8sNodeFilters of that name; None when there is none."""
    return next((one for one in cluster.spec.k8s_node_filters if one.name == name), None)


def node_set_status(old: NodeSetStatus, status: WorkerSetStatus) -> NodeSetStatus:
    """A NodeSet's next status; `replicas` are the workers that are available, as users know it."""
    return replace(
        old,
        observed_generation=status.observed_generation,
        replicas=status.available_replicas,
        label_selector=status.selector,
        workers=worker_counts(status),
        conditions=status.conditions,
    )


def cluster_status(old: SlurmClusterStatus, status: WorkerSetStatus) -> SlurmClusterStatus:
    """A SlurmCluster's next status, as far as it is about its own workers."""
    return replace(old, ready_workers=status.ready_replicas, workers=worker_counts(status))


def _replicas(declared: int, maintenance: Maintenance) -> int:
    return 0 if maintenance_mode(maintenance).scales_down else max(declared, 0)


def _names(name: str, uid: str) -> WorkerNames:
    return WorkerNames(
        pod_prefix=f"{name}-",
        host_prefix=f"{name}-",
        padding=0,
        uid=uid,
        reservation=f"{name}-maintenance",
        feature=name,
    )


def _mounts(worker: WorkerNode) -> tuple[NodeVolumeMount, ...]:
    return (*worker.volumes.jail_sub_mounts, *worker.volumes.custom_mounts)


def _templates(
    mounts: Iterable[NodeVolumeMount] | Iterable[VolumeMount], *, spool: bool
) -> tuple[str, ...]:
    """Names of the PVC templates; several mounts may be of one."""
    found = dict.fromkeys([names.SPOOL] if spool else [])
    found |= dict.fromkeys(one.name for one in mounts if one.volume_claim_template_spec is not None)
    return tuple(found)


def _images(meta: ObjectMeta, **fields: Json) -> ImageSources:
    by_chart = meta.labels.get(labels.MANAGED_BY) == "Helm"
    return ImageSources(meta.namespace, {}, fields, by_chart)
