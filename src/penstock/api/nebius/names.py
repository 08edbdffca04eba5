"""Names that follow from kinds of `slurm.nebius.ai`."""

from __future__ import annotations

from penstock.api.nebius.labels import PARENT_CLUSTER
from penstock.api.nebius.nodeset import NodeSet


def cluster_of(nodeset: NodeSet) -> str:
    """The SlurmCluster of a NodeSet; empty when it has none."""
    return nodeset.spec.cluster_name or nodeset.metadata.annotations.get(PARENT_CLUSTER, "")
