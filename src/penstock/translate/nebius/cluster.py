"""From a SlurmCluster and its NodeSets to the cluster that they declare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.api.cluster import marks as own_marks
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius import names
from penstock.api.nebius.nodeset import NODE_SETS, NodeSet
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.model.cluster import AccountingLink, Cluster, ClusterMarks, SlurmNodeSet
from penstock.translate.object_ref import object_ref

MARKS: Final = ClusterMarks(active="", restart=own_marks.RESTART)
"""The original has neither: one slurmctld, and no way to restart it but its pod's deletion."""


def cluster(declared: SlurmCluster, node_sets: Iterable[NodeSet] = ()) -> Cluster:
    """The cluster of a SlurmCluster; `node_sets` are those that name it."""
    meta, nodes = declared.metadata, declared.spec.slurm_nodes
    reference = object_ref(SLURM_CLUSTERS, declared)
    own = [SlurmNodeSet(reference, names.IMPLICIT_NODE_SET)] if nodes.worker is not None else []
    return Cluster(
        declared_by=reference,
        conditions=declared.status.conditions,
        external=False,
        host=f"{names.service(meta.name, 'controller')}.{meta.namespace}",
        port=nodes.controller.slurmctld.port or names.SLURMCTLD_PORT,
        slurm_key=names.auth_key(declared),
        has_munge=declared.spec.has_munge,
        jwt_key=SecretKeySelector(name=names.jwt_secret(meta.name), key=names.JWT_KEY),
        accounting=accounting_link(declared),
        extra_conf=declared.spec.custom_slurm_config,
        node_sets=(
            *own,
            *(
                SlurmNodeSet(object_ref(NODE_SETS, one), one.metadata.name)
                for one in sorted(node_sets, key=lambda one: one.metadata.name)
            ),
        ),
    )


def accounting_link(declared: SlurmCluster) -> AccountingLink | None:
    """The slurmdbd of a SlurmCluster, which the same object declares."""
    if not declared.spec.slurm_nodes.accounting.enabled:
        return None
    meta = declared.metadata
    return AccountingLink(
        meta.namespace, meta.name, exists=True, conditions=declared.status.conditions
    )
