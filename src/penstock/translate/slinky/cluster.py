"""From a Controller and its Accounting to the cluster that they declare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.api.slinky import labels, names
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.model.cluster import AccountingLink, Cluster, ClusterMarks, SlurmNodeSet
from penstock.model.partition_spec import PartitionSpec
from penstock.translate.object_ref import object_ref

MARKS: Final = ClusterMarks(active=labels.CONTROLLER_ACTIVE, restart=labels.RESTART_TRIGGER)
"""Label and annotation of slurm-operator."""


def cluster(
    controller: Controller,
    accounting: Accounting | None = None,
    nodesets: Iterable[NodeSet] = (),
    partitions: Iterable[PartitionSpec] = (),
) -> Cluster:
    """The cluster of a Controller; `accounting` is None while that object does not exist."""
    return Cluster(
        declared_by=object_ref(CONTROLLERS, controller),
        conditions=controller.status.conditions,
        external=controller.spec.external,
        host=names.slurmctld_host(controller),
        port=names.slurmctld_port(controller),
        slurm_key=names.slurm_key_ref(controller),
        jwt_key=names.jwt_key_ref(controller),
        accounting=accounting_link(controller, accounting),
        extra_conf=controller.spec.extra_conf,
        node_sets=tuple(map(slurm_node_set, nodesets)),
        partitions=tuple(partitions),
        has_munge=controller.spec.munge_key_ref is not None,
    )


def accounting_link(controller: Controller, accounting: Accounting | None) -> AccountingLink | None:
    """The slurmdbd of a Controller, or None when it names no Accounting."""
    namespace = controller.metadata.namespace
    if accounting is not None:
        return AccountingLink(
            namespace=namespace,
            name=accounting.metadata.name,
            exists=True,
            external=accounting.spec.external,
            conditions=accounting.status.conditions,
        )
    ref = controller.spec.accounting_ref
    return AccountingLink(namespace, ref.name, exists=False) if ref is not None else None


def slurm_node_set(nodeset: NodeSet) -> SlurmNodeSet:
    """The nodes of a NodeSet in slurm.conf."""
    own = nodeset.spec.partition
    return SlurmNodeSet(
        declared_by=object_ref(NODESETS, nodeset),
        name=names.partition_name(nodeset),
        partition=own.config if own is not None and own.enabled else None,
    )
