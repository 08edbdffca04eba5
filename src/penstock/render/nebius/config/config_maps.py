"""The ConfigMaps with the configuration of a SlurmCluster, and the JailedConfig of its files.

The candidate has the desired files, the startup ConfigMap those in force, the last known good one
those that slurmctld was seen to run with.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.api.nebius.jailed_config import JAILED_CONFIGS
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.render.config.content import content_hash, rejection
from penstock.render.nebius.config.files import TOPOLOGY_CONF
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata
from penstock.slurm.conf.includes import FOLDER, SLURM_CONF, resolved
from penstock.slurm.partition.retention import records_of

_COMPONENT = "controller"


def config_map(
    cluster: SlurmCluster,
    name: str,
    data: Mapping[str, str],
    rejected: Mapping[str, str] | None = None,
) -> Json:
    """One of the three ConfigMaps, with the mark that shows whether its data is the operator's.

    `rejected` is that of `Contents`: the verdict is written with the files, never without them.
    """
    metadata = _metadata(cluster, name)
    metadata["annotations"] = {marks.CONTENT_HASH: content_hash(data)}
    if rejected:
        metadata["annotations"][marks.CONFIG_REFUSED] = rejection(rejected)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def topology_config(cluster: SlurmCluster, prefix: str, data: Mapping[str, str]) -> Json:
    """The ConfigMap with topology.conf, under the name by which users of the original read it."""
    name = names.topology_config(prefix)
    return config_map(cluster, name, {TOPOLOGY_CONF: data[TOPOLOGY_CONF]})


def partition_record(cluster: SlurmCluster, data: Mapping[str, str]) -> Json:
    """The ConfigMap with the partitions of slurmctld, for the next SlurmCluster of the name.

    It has no owner: slurmctld's state outlives its SlurmCluster, and so do jobs in partitions.
    """
    metadata = object_metadata(
        names.partition_record(cluster.metadata.name),
        cluster.metadata.namespace,
        labels.object_labels(_COMPONENT, cluster.metadata.name),
    )
    found = records_of(resolved(data))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {SLURM_CONF: found},
    }


def jailed_config(cluster: SlurmCluster, data: Mapping[str, str]) -> Json:
    """The JailedConfig by which the files of the startup ConfigMap reach the jail.

    It has the form that the original gives it, so one that is adopted stays as it is.
    """
    name = names.slurm_configs(cluster.metadata.name)
    metadata = _metadata(cluster, name)
    metadata["labels"][labels.JAILED_AGGREGATION] = labels.COMMON
    return {
        "apiVersion": JAILED_CONFIGS.api_version,
        "kind": JAILED_CONFIGS.kind,
        "metadata": metadata,
        "spec": {
            "configMap": {"name": name},
            "items": [{"key": file, "path": f"{FOLDER}/{file}"} for file in data],
            "updateActions": ["Reconfigure"],
        },
    }


def _metadata(cluster: SlurmCluster, name: str) -> Json:
    meta = cluster.metadata
    own = labels.object_labels(_COMPONENT, meta.name)
    return object_metadata(name, meta.namespace, own, owner(cluster))
