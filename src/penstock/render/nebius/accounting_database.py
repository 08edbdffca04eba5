"""The MariaDB that the operator runs for the slurmdbd of a SlurmCluster."""

from __future__ import annotations

from typing import Final

from penstock.api.nebius import labels, names
from penstock.api.nebius.accounting import EmbeddedDb
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place
from penstock.render.parts.embedded_database import DatabaseInputs
from penstock.render.parts.owner import owner

COMPONENT: Final = "accounting-database"


def inputs(cluster: ClusterInputs) -> DatabaseInputs:
    """What it is rendered from: it runs where slurmdbd may run, and rests with the cluster."""
    accounting = cluster.spec.slurm_nodes.accounting
    return DatabaseInputs(
        name=names.accounting_database(cluster.name),
        namespace=cluster.namespace,
        owner=owner(cluster.cluster),
        labels=labels.object_labels(COMPONENT, cluster.name),
        selector=labels.selector_labels(COMPONENT, cluster.name),
        declared=accounting.embedded_db or EmbeddedDb(image=""),
        password_hash="",
        place=filter_place(cluster.spec, accounting.k8s_node_filter_name),
        replicas=cluster.database_replicas(1),
    )
