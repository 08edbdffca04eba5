"""From a NodeSet to the worker set that it declares, and from its status back."""

from __future__ import annotations

from typing import Final

import msgspec

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names, tolerations
from penstock.api.slinky.nodeset import NODESETS, NodeSet, NodeSetStatus
from penstock.model.worker_marks import CommentKeys, WorkerMarks
from penstock.model.worker_names import WorkerNames
from penstock.model.worker_set import (
    Placement,
    PvcPolicy,
    UpdatePolicy,
    Wording,
    WorkerSet,
)
from penstock.model.worker_status import WorkerSetStatus
from penstock.slurm.reservation_schedule import Schedule, schedule
from penstock.translate.placement import placement as required_nodes
from penstock.translate.slinky.chart_labels import chart_labels
from penstock.translate.slinky.image_sources import image_sources

DAEMON_SET: Final = "DaemonSet"
MARKS: Final = WorkerMarks(
    kind=NODESETS.kind,
    cordon=slinky_labels.POD_CORDON_KEYS,
    deadline=slinky_labels.POD_DEADLINE,
    deletion_cost=slinky_labels.POD_DELETION_COST,
    protect=slinky_labels.POD_PROTECT,
    revision=(slinky_labels.REVISION_HASH, slinky_labels.FORMER_REVISION_HASH),
    per_node=slinky_labels.SCALING_MODE,
    per_node_value=DAEMON_SET,
    labels={slinky_labels.COMPONENT: "slurmd"},
    topology=slinky_labels.TOPOLOGY,
    features=slinky_labels.FEATURES,
    hostname=slinky_labels.HOSTNAME_OVERRIDE,
    cordon_reason=slinky_labels.NODE_CORDON_REASON,
    drain_prefix=slinky_labels.REASON_PREFIX,
    state_prefix=slinky_labels.NODE_STATE_PREFIX,
    reservation_finalizer=slinky_labels.RESERVATION_FINALIZER,
    comment=CommentKeys(
        slinky_labels.COMMENT_NAMESPACE,
        slinky_labels.COMMENT_POD,
        slinky_labels.COMMENT_NODE,
        slinky_labels.COMMENT_NODESET,
        slinky_labels.COMMENT_NODESET_UID,
    ),
)
"""Labels, annotations and prefixes of slurm-operator."""
WORDING: Final = Wording(
    cluster_kind="Controller",
    cluster_field="spec.controllerRef",
    template_field="spec.template.spec",
)


def worker_set(nodeset: NodeSet) -> WorkerSet:
    """The workers that a NodeSet declares."""
    spec = nodeset.spec
    retention = spec.persistent_volume_claim_retention_policy
    return WorkerSet(
        api_version=NODESETS.api_version,
        kind=NODESETS.kind,
        metadata=nodeset.metadata,
        cluster=spec.controller_ref.name,
        names=worker_names(nodeset),
        marks=MARKS,
        wording=WORDING,
        replicas=spec.replicas,
        per_node=spec.scaling_mode == DAEMON_SET,
        placement=placement(nodeset),
        host_network=bool(spec.template.spec.get("hostNetwork")),
        pin_to_node=spec.pin_to_node,
        update=UpdatePolicy(
            spec.update_strategy.type,
            spec.update_strategy.rolling_update.max_unavailable,
            _schedule(nodeset),
        ),
        pvcs=PvcPolicy(_pvc_templates(nodeset), retention.when_deleted, retention.when_scaled),
        parameters=spec.extra_conf,
        prune_missing_nodes=spec.prune_slurm_node_records != "Never",
        protect_busy_pods=spec.workload_disruption_protection,
        min_ready_seconds=spec.min_ready_seconds,
        revision_history_limit=spec.revision_history_limit,
        selector=app_labels.selector_labels("slurmd", nodeset.metadata.name),
        images=image_sources(nodeset),
        chart_labels=chart_labels(nodeset),
        last=_last(nodeset.status),
    )


def worker_names(nodeset: NodeSet) -> WorkerNames:
    """How a NodeSet names its pods, Slurm nodes and PVCs."""
    prefix = f"{nodeset.metadata.name}-"
    return WorkerNames(
        pod_prefix=prefix,
        host_prefix=names.template_hostname(nodeset) or prefix,
        padding=nodeset.spec.ordinal_padding,
        uid=nodeset.metadata.uid,
        reservation=names.reservation(nodeset),
        feature=names.partition_name(nodeset),
    )


def placement(nodeset: NodeSet) -> Placement | None:
    """What a NodeSet's template requires of Kubernetes nodes; None when it cannot be read."""
    spec = nodeset.spec.template.spec
    affinity: Json = spec.get("affinity") or {}
    tolerated = [tolerations.WORKER, *tolerations.DAEMON]
    if spec.get("hostNetwork"):
        tolerated.append(tolerations.HOST_NETWORK)
    return required_nodes(
        spec.get("nodeSelector"), affinity, [*tolerated, *(spec.get("tolerations") or ())]
    )


def nodeset_status(old: NodeSetStatus, status: WorkerSetStatus) -> NodeSetStatus:
    """A NodeSet's next status; what the model does not have is kept from the `old` one."""
    return msgspec.structs.replace(
        old,
        observed_generation=status.observed_generation,
        replicas=status.replicas,
        updated_replicas=status.updated_replicas,
        ready_replicas=status.ready_replicas,
        available_replicas=status.available_replicas,
        unavailable_replicas=status.unavailable_replicas,
        desired=status.desired,
        slurm_idle=status.slurm_idle,
        slurm_allocated=status.slurm_allocated,
        slurm_down=status.slurm_down,
        slurm_drain=status.slurm_drain,
        node_set_hash=status.revision,
        ordinal_to_node=dict(status.ordinal_to_node),
        external_slurm=status.external,
        selector=status.selector,
        conditions=status.conditions,
    )


def _last(status: NodeSetStatus) -> WorkerSetStatus:
    return WorkerSetStatus(
        observed_generation=status.observed_generation,
        replicas=status.replicas,
        updated_replicas=status.updated_replicas,
        ready_replicas=status.ready_replicas,
        available_replicas=status.available_replicas,
        unavailable_replicas=status.unavailable_replicas,
        desired=status.desired,
        slurm_idle=status.slurm_idle,
        slurm_allocated=status.slurm_allocated,
        slurm_down=status.slurm_down,
        slurm_drain=status.slurm_drain,
        revision=status.node_set_hash,
        selector=status.selector,
        ordinal_to_node=status.ordinal_to_node,
        external=status.external_slurm,
        conditions=status.conditions,
    )


def _pvc_templates(nodeset: NodeSet) -> tuple[str, ...]:
    metas: list[Json] = [
        one.get("metadata") or {} for one in nodeset.spec.volume_claim_templates or ()
    ]
    return tuple(name for meta in metas if (name := str(meta.get("name") or "")))


def _schedule(nodeset: NodeSet) -> Schedule | None:
    declared = nodeset.spec.update_strategy.scheduled_update
    try:
        if declared is None:
            return None
        return schedule(declared.start_time, declared.duration, declared.flags)
    except ValueError:
        return None
