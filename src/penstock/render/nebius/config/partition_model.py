"""The cluster with the partitions whose workers are named one by one, as decisions read it."""

from __future__ import annotations

from dataclasses import replace

from penstock.model.cluster import Cluster
from penstock.render.nebius.config import node_lines, worker_names
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.slurm_conf import partition_text
from penstock.slurm.conf.document import Document
from penstock.slurm.partition.declaration import NODE_SET
from penstock.translate.nebius.cluster import cluster


def partition_model(inputs: ConfigInputs) -> Cluster:
    """The cluster with these partitions, and with the other node sets as its only lines.

    The partitions are lines of the user as well, which would hide them here.
    """
    custom = Document.parse(inputs.cluster.spec.custom_slurm_config)
    sets = [one.render() for one in custom.records(NODE_SET)]
    lines = [*node_lines.feature_sets(inputs), *sets]
    return replace(
        cluster(inputs.cluster, inputs.node_sets),
        extra_conf="".join(f"{line}\n" for line in lines),
        partitions=worker_names.partition_specs(inputs, partition_text(inputs)),
    )
