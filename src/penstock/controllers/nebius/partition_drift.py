"""Drift of the partitions of SlurmClusters, which alone declare them."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.nebius.adopted_partitions import into_slurm_cluster
from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.controllers.partition.drift_source import DriftSource
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.decide.drift import Choice, Found, choice
from penstock.render.config.content import content_hash
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.slurm.conf.includes import resolved
from penstock.slurm.known import Known
from penstock.slurm.mirror.partitions import Records
from penstock.slurm.partition.adoption import Sets
from penstock.slurm.partition.declaration import ALL, Adoption
from penstock.slurm.state import Node


class ClusterDrift(DriftSource[SlurmCluster, ConfigInputs]):
    """Of all SlurmClusters; an annotation chooses what becomes of it."""

    def __init__(self, clusters: NebiusClusters) -> None:
        self._clusters = clusters

    def find(self, key: str) -> SlurmCluster | None:
        """By the cache."""
        return self._clusters.caches.clusters.get(key)

    def is_external(self, obj: SlurmCluster) -> bool:
        """Its slurmctld is always a pod."""
        return False

    def object_of(self, cluster: ConfigInputs) -> SlurmCluster:
        """Its SlurmCluster."""
        return cluster.cluster

    def cluster(self, obj: SlurmCluster) -> ConfigInputs:
        """With NodeSets of the caches."""
        return self._clusters.config(obj)

    def active_conf(self, obj: SlurmCluster) -> str | None:
        """That of the startup ConfigMap, if the status has its hash."""
        data = self._clusters.published(obj)
        if not data or obj.status.effective_config_hash != content_hash(data):
            return None
        return resolved(data)

    def owner(self, obj: SlurmCluster, partition: str) -> KubeObject:
        """The SlurmCluster."""
        return obj

    def status(self, owner: KubeObject) -> Status:
        """That of the SlurmCluster."""
        return owner.status if isinstance(owner, SlurmCluster) else Status()

    def choice(self, owner: KubeObject) -> Choice:
        """By its annotation."""
        return choice(owner.metadata.annotations)[0]

    def adoption(
        self, owner: KubeObject, cluster: ConfigInputs, link: SlurmConnection, due: Found
    ) -> Adoption:
        """In the list or the lines that declare each partition."""
        records = link.partitions.records
        live: Records = records.value if isinstance(records, Known) else {}
        return into_slurm_cluster(cluster.cluster.spec, due, live, _sets(cluster, link))


def _sets(cluster: ConfigInputs, link: SlurmConnection) -> Sets:
    """The node sets of worker sets, and ALL, with the nodes that they have now."""
    nodes = link.mirror.snapshot.nodes
    there: Mapping[str, Node] = nodes.value if isinstance(nodes, Known) else {}
    found: dict[str, frozenset[str]] = {ALL: frozenset(there)}
    own = [names.IMPLICIT_NODE_SET] if cluster.is_older else []
    for name in (*own, *(one.metadata.name for one in cluster.sorted_node_sets)):
        found[name] = frozenset(n for n, node in there.items() if name in node.features)
    return found
