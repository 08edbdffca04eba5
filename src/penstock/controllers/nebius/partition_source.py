"""The partitions of SlurmClusters, as they are changed in a running slurmctld."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from penstock.api.kubernetes.kinds import Pod, StatefulSet
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.catalog.event import Event
from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.controllers.observed.cluster_state import PartitionOverrides
from penstock.controllers.partition.source import PartitionSource
from penstock.controllers.runtime.report import Events
from penstock.decide.partition.conditions import without
from penstock.model.cluster import Cluster
from penstock.render.config.partition import Worker
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.partition_model import partition_model
from penstock.render.nebius.config.slurm_conf import retained_partitions, slurm_conf_files
from penstock.slurm.conf.includes import resolved
from penstock.slurm.partition.removed_keys import removed_keys


class ClusterPartitions(PartitionSource[SlurmCluster, ConfigInputs]):
    """Those of all SlurmClusters. Texts of slurm.conf have their includes resolved."""

    def __init__(self, clusters: NebiusClusters) -> None:
        self._clusters = clusters

    def is_external(self, obj: SlurmCluster) -> bool:
        """Its slurmctld is always a pod."""
        return False

    def overrides(self, obj: SlurmCluster) -> PartitionOverrides:
        """Of its uid."""
        return self._clusters.overrides.of(obj)

    def startup_conf(self, obj: SlurmCluster) -> str | None:
        """In the startup ConfigMap."""
        return resolved(self._clusters.published(obj)) or None

    def runs_with_startup(self, obj: SlurmCluster) -> bool:
        """By the data of both ConfigMaps."""
        meta = obj.metadata
        good = names.last_known_good_configs(meta.name)
        found = self._clusters.caches.config_map(f"{meta.namespace}/{good}")
        return found is not None and (found.data or {}) == self._clusters.published(obj)

    def cluster(self, obj: SlurmCluster) -> ConfigInputs:
        """With NodeSets of the caches."""
        return self._clusters.config(obj)

    def accepted(self, obj: SlurmCluster) -> ConfigInputs | None:
        """With the last known good lines of the SlurmCluster."""
        return self._clusters.accepted(obj)

    def slurmctld_pods(self, obj: SlurmCluster) -> tuple[Pod, ...]:
        """There is one."""
        return self._clusters.slurmctld_pods(obj)

    def workload(self, obj: SlurmCluster) -> StatefulSet | None:
        """By its name."""
        name = names.controller_workload(self._clusters.prefix(obj))
        return self._clusters.caches.stateful_set(f"{obj.metadata.namespace}/{name}")

    def has_slurmrestd(self, obj: SlurmCluster) -> bool:
        """Each SlurmCluster has one."""
        return True

    def has_own_object(self, obj: SlurmCluster, partition: str) -> bool:
        """All partitions are declared by the SlurmCluster."""
        return False

    def report_removed_keys(
        self, obj: SlurmCluster, events: Events, texts: tuple[str, str], only: Container[str]
    ) -> None:
        """At the SlurmCluster: a merge patch replaces the whole list of partitions."""
        for name, found in sorted(removed_keys(*texts).items()):
            if name in only:
                events.normal(obj, Event.PARTITION_KEYS_GONE, without(name, found), "Configure")

    def model(self, cluster: ConfigInputs) -> Cluster:
        """With the partitions that name workers one by one."""
        return partition_model(cluster)

    def slurm_conf(self, cluster: ConfigInputs) -> str:
        """Rendered from the objects."""
        return resolved(slurm_conf_files(cluster))

    def retained(self, cluster: ConfigInputs) -> frozenset[str]:
        """By the slurm.conf in effect."""
        return retained_partitions(cluster)

    def kept(self, cluster: ConfigInputs) -> frozenset[str]:
        """Rejected ones."""
        return cluster.rejected_partitions

    def keeping(
        self, cluster: ConfigInputs, partitions: frozenset[str], text: str = ""
    ) -> ConfigInputs:
        """As rejected ones."""
        found = text if partitions else ""
        return replace(cluster, rejected_partitions=partitions, slurm_conf=found)

    def freeing(self, cluster: ConfigInputs, partitions: frozenset[str]) -> ConfigInputs:
        """As freed ones."""
        return replace(cluster, freed=partitions)

    def workers(self, cluster: ConfigInputs) -> Mapping[str, Worker]:
        """No partition of a SlurmCluster selects by labels."""
        return {}
