"""From NodeSets and a SlurmCluster's own workers to the worker sets that they declare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from penstock.api.cluster.labels import TRUE, is_from_chart, selector_text
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.kubernetes.resource import Resource
from penstock.api.nebius import labels, names
from penstock.api.nebius.nodeset import NODE_SETS, NodeSet, NodeSetStatus
from penstock.api.nebius.rule_parts import is_budget
from penstock.api.nebius.slurmcluster import (
    SLURM_CLUSTERS,
    Maintenance,
    NodeFilter,
    SlurmCluster,
    SlurmClusterStatus,
)
from penstock.api.nebius.volumes import (
    JailSource,
    NodeVolume,
    NodeVolumeMount,
    SpoolSource,
    VolumeMount,
)
from penstock.catalog.marks import kubernetes
from penstock.catalog.marks import penstock as own
from penstock.model.image_sources import ImageSources
from penstock.model.worker_marks import CommentKeys, WorkerMarks
from penstock.model.worker_names import WorkerNames
from penstock.model.worker_set import Placement, PvcPolicy, UpdatePolicy, Wording, WorkerSet
from penstock.model.worker_status import WorkerSetStatus
from penstock.translate.nebius.jail import maintenance_in_force, maintenance_mode
from penstock.translate.nebius.node_words import node_words
from penstock.translate.nebius.worker_counts import last_status, versions, worker_counts
from penstock.translate.placement import placement

_HISTORY = 10


def marks(kind: str) -> WorkerMarks:
    """Labels, annotations and prefixes of the workers of a kind.

    A drain reason that the original writes (`soperator rolling update`) is somebody else's.
    """
    return WorkerMarks(
        kind=kind,
        cordon=(own.OWN_DRAIN.key,),
        deadline=own.OWN_DEADLINE.key,
        deletion_cost=kubernetes.POD_DELETION_COST.key,
        protect=labels.POD_PROTECT,
        revision=(labels.REVISION,),
        per_node="",
        per_node_value="",
        labels={labels.WORKER: TRUE},
        topology="",
        features="",
        hostname="",
        cordon_reason="",
        drain_prefix="soperator: ",
        state_prefix="SlurmNodeState",
        reservation_finalizer=own.OWN_RESERVATION.key,
        comment=CommentKeys("namespace", "pod", "node", "owner", "ownerUID"),
    )


_MARKS: Final = {kind: marks(kind) for kind in (NODE_SETS.kind, SLURM_CLUSTERS.kind)}


def node_set_workers(
    node_set: NodeSet,
    maintenance: Maintenance = "none",
    of_cluster: ObjectMeta | None = None,
    active: Collection[int] = (),
) -> WorkerSet:
    """The workers that a NodeSet declares; `maintenance` is the mode of its SlurmCluster.

    `active` are the ordinals of the ephemeral nodes that are to have a pod, whatever the replicas.
    """
    meta, spec, status = node_set.metadata, node_set.spec, node_set.status
    cluster, volumes = names.cluster_of(node_set), spec.slurmd.volumes
    retention = volumes.persistent_volume_claim_retention_policy
    older = spec.node_attributes
    features = (meta.name, *spec.node_config.features, *(older.features if older else ()))
    replicas = _replicas(spec.replicas, maintenance)
    powered = None
    if spec.ephemeral_nodes:
        powered = frozenset(number for number in active if 0 <= number < replicas)
    return _worker_set(
        NODE_SETS,
        meta,
        cluster=cluster,
        name=meta.name,
        cluster_field="spec.clusterName",
        template_field="spec",
        replicas=replicas if powered is None else len(powered),
        placement=placement(spec.node_selector, spec.affinity, spec.tolerations),
        max_unavailable=spec.max_unavailable,
        pvcs=PvcPolicy(
            _templates(
                volumes.spool,
                (*volumes.jail_sub_mounts, *volumes.custom_volume_mounts),
                volumes.jail,
            ),
            retention.when_deleted,
            retention.when_scaled,
        ),
        parameters=node_words(features, spec.node_config.static, spec.slurmd.resources),
        selector=labels.node_set_selector(meta.name, cluster),
        slurmd=spec.slurmd.image.reference,
        munge=spec.munge.image.reference,
        last=last_status(
            status.workers,
            generation=status.observed_generation,
            selector=status.label_selector,
            conditions=status.conditions,
            template_of=versions(meta, of_cluster),
        ),
        powered=powered,
        power_saved=max(spec.replicas, 0) if spec.ephemeral_nodes else 0,
    )


def cluster_workers(cluster: SlurmCluster, prefix: str = "") -> WorkerSet | None:
    """The workers that a SlurmCluster declares itself; None in the shape that has NodeSets.

    `prefix` is that of its workloads: a second cluster of a namespace has other pods.
    """
    meta, worker, status = cluster.metadata, cluster.spec.slurm_nodes.worker, cluster.status
    if worker is None:
        return None
    found = node_filter(cluster, worker.k8s_node_filter_name)
    volumes, selector = worker.volumes, labels.selector_labels("worker", meta.name)
    return _worker_set(
        SLURM_CLUSTERS,
        meta,
        cluster=meta.name,
        name=names.IMPLICIT_NODE_SET,
        prefix=prefix,
        cluster_field="metadata.name",
        template_field="spec.slurmNodes.worker",
        replicas=_replicas(worker.size or 0, maintenance_in_force(cluster)),
        placement=placement(found.node_selector, found.affinity, found.tolerations)
        if found is not None
        else None,
        max_unavailable=worker.max_unavailable,
        pvcs=PvcPolicy(
            _templates(
                volumes.spool, (*volumes.jail_sub_mounts, *volumes.custom_mounts), volumes.jail
            ),
            "Delete",
            "Retain",
        ),
        parameters=node_words((names.IMPLICIT_NODE_SET,), "", worker.slurmd.resources),
        selector=selector,
        slurmd=worker.slurmd.image,
        munge=worker.munge.image,
        last=last_status(
            status.workers,
            generation=status.observed_generation,
            selector=selector_text(selector),
            conditions=status.conditions,
            template_of=versions(meta),
        ),
        own_features=frozenset(one.name for one in cluster.spec.worker_features),
    )


def node_filter(cluster: SlurmCluster, name: str) -> NodeFilter | None:
    """The entry of spec.k8sNodeFilters of that name; None when there is none."""
    return next((one for one in cluster.spec.k8s_node_filters if one.name == name), None)


def node_set_status(
    old: NodeSetStatus, status: WorkerSetStatus, template_of: str = ""
) -> NodeSetStatus:
    """A NodeSet's next status; `replicas` are the workers that are available, as users know it.

    `template_of` are the `versions` of what the revision was computed from.
    """
    return replace(
        old,
        observed_generation=status.observed_generation,
        replicas=status.available_replicas,
        label_selector=status.selector,
        workers=worker_counts(status, template_of),
        conditions=status.conditions,
    )


def cluster_status(
    old: SlurmClusterStatus, status: WorkerSetStatus, template_of: str = ""
) -> SlurmClusterStatus:
    """A SlurmCluster's next status, as far as it is about its own workers.

    `template_of` are the `versions` of what the revision was computed from.
    """
    counts = worker_counts(status, template_of)
    return replace(old, ready_workers=status.ready_replicas, workers=counts)


def _replicas(declared: int, maintenance: Maintenance) -> int:
    return 0 if maintenance_mode(maintenance).scales_down else max(declared, 0)


def _budget(declared: int | str) -> int | str:
    """The declared number or percentage. One that is neither is replaced by the least."""
    return declared if is_budget(declared) else 1


def _worker_set(
    resource: Resource[Any],
    meta: ObjectMeta,
    *,
    cluster: str,
    name: str,
    prefix: str = "",
    cluster_field: str,
    template_field: str,
    replicas: int,
    placement: Placement | None,
    max_unavailable: int | str,
    pvcs: PvcPolicy,
    parameters: str,
    selector: Mapping[str, str],
    slurmd: str,
    munge: str,
    last: WorkerSetStatus,
    own_features: frozenset[str] = frozenset(),
    powered: frozenset[int] | None = None,
    power_saved: int = 0,
) -> WorkerSet:
    """A worker set of this API, with what is the same for both kinds.

    `name` is that of its Slurm feature, and with `prefix` of its pods and Slurm nodes; `slurmd` and
    `munge` are images.
    """
    images = {"slurmd": {"image": slurmd}, "munge": {"image": munge}}
    return WorkerSet(
        api_version=resource.api_version,
        kind=resource.kind,
        metadata=meta,
        cluster=cluster,
        names=WorkerNames(
            pod_prefix=f"{prefix}{name}-",
            host_prefix=f"{prefix}{name}-",
            padding=0,
            uid=meta.uid,
            reservation=f"{name}-maintenance",
            feature=name,
        ),
        marks=_MARKS[resource.kind],
        wording=Wording(SLURM_CLUSTERS.kind, cluster_field, template_field),
        replicas=replicas,
        per_node=False,
        placement=placement,
        host_network=False,
        pin_to_node=False,
        update=UpdatePolicy("RollingUpdate", _budget(max_unavailable)),
        pvcs=pvcs,
        parameters=parameters,
        prune_missing_nodes=True,
        protect_busy_pods=True,
        min_ready_seconds=0,
        revision_history_limit=_HISTORY,
        selector=selector,
        images=ImageSources(meta.namespace, {}, images, is_from_chart(meta.labels)),
        chart_labels={},
        last=last,
        own_features=own_features,
        powered=powered,
        power_saved=power_saved,
    )


def _templates(
    spool: NodeVolume | SpoolSource,
    mounts: Iterable[NodeVolumeMount] | Iterable[VolumeMount],
    jail: NodeVolume | JailSource,
) -> tuple[str, ...]:
    """Names of the PVC templates; several mounts may be of one."""
    found = dict.fromkeys(
        name
        for name, one in ((names.SPOOL, spool), (names.JAIL, jail))
        if one.volume_claim_template_spec is not None
    )
    found |= dict.fromkeys(one.name for one in mounts if one.volume_claim_template_spec is not None)
    return tuple(found)
