"""The partitions of Controllers, as they are changed in a running slurmctld."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from penstock.api.kubernetes.kinds import Pod, StatefulSet
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.controllers.observed.cluster_state import PartitionOverrides
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.partition.source import PartitionSource
from penstock.controllers.runtime.report import Events
from penstock.controllers.slinky import removed_keys
from penstock.controllers.slinky.worker_labels import workers
from penstock.kube.runtime.state import StateByUid
from penstock.model.cluster import Cluster
from penstock.render.config.partition import Worker
from penstock.render.slinky.config.slurm_conf import retained_partitions, slurm_conf
from penstock.render.slinky.inputs import ClusterInputs


class ControllerPartitions(PartitionSource[Controller, ClusterInputs]):
    """Those of all Controllers; `overrides` are state that their changes write."""

    def __init__(self, clusters: SlinkyClusters, overrides: StateByUid[PartitionOverrides]) -> None:
        self._caches = clusters.caches
        self._clusters = clusters
        self._overrides = overrides

    def is_external(self, obj: Controller) -> bool:
        """By its spec."""
        return obj.spec.external

    def overrides(self, obj: Controller) -> PartitionOverrides:
        """Of its uid."""
        return self._overrides.of(obj)

    def startup_conf(self, obj: Controller) -> str | None:
        """In the startup ConfigMap."""
        return self._clusters.slurm_conf(obj)

    def runs_with_startup(self, obj: Controller) -> bool:
        """By the data of both ConfigMaps."""
        space = obj.metadata.namespace
        ours = (names.config_map(obj), names.config_map_alias(obj))
        startup, good = (self._caches.config_map(f"{space}/{name}") for name in ours)
        return startup is not None and good is not None and startup.data == good.data

    def cluster(self, obj: Controller) -> ClusterInputs:
        """With NodeSets, Partitions and Accounting of the caches."""
        return self._clusters.cluster(obj)

    def accepted(self, obj: Controller) -> ClusterInputs | None:
        """With the `extraConf` that Slurm has."""
        return self._clusters.accepted(obj)

    def slurmctld_pods(self, obj: Controller) -> tuple[Pod, ...]:
        """With backups the labelled one is the active one."""
        return self._clusters.slurmctld_pods(obj)

    def workload(self, obj: Controller) -> StatefulSet | None:
        """By its name."""
        name = names.controller_workload(obj)
        return self._caches.stateful_set(f"{obj.metadata.namespace}/{name}")

    def has_slurmrestd(self, obj: Controller) -> bool:
        """Whether a RestApi names it."""
        return any(self._caches.restapis_of.get(obj.metadata.key))

    def has_own_object(self, obj: Controller, partition: str) -> bool:
        """Whether it is of a Partition."""
        found = self._caches.partitions_of.get(obj.metadata.key)
        return any(one.slurm_name == partition for one in found)

    def report_removed_keys(
        self, obj: Controller, events: Events, texts: tuple[str, str], only: Container[str]
    ) -> None:
        """At the NodeSets that declare the partitions."""
        removed_keys.emit_removed_keys(self._caches, events, obj, texts, only=only)

    def model(self, cluster: ClusterInputs) -> Cluster:
        """Translated from the objects."""
        return cluster.model

    def slurm_conf(self, cluster: ClusterInputs) -> str:
        """Rendered from the objects."""
        return slurm_conf(cluster)

    def retained(self, cluster: ClusterInputs) -> frozenset[str]:
        """By the slurm.conf in effect."""
        return retained_partitions(cluster)

    def kept(self, cluster: ClusterInputs) -> frozenset[str]:
        """Rejected and invalid ones."""
        return cluster.rejected_partitions

    def keeping(
        self, cluster: ClusterInputs, partitions: frozenset[str], text: str = ""
    ) -> ClusterInputs:
        """As rejected ones."""
        found = text if partitions else ""
        return replace(cluster, rejected_partitions=partitions, slurm_conf=found)

    def freeing(self, cluster: ClusterInputs, partitions: frozenset[str]) -> ClusterInputs:
        """As freed ones."""
        return replace(cluster, freed=partitions)

    def workers(self, cluster: ClusterInputs) -> Mapping[str, Worker]:
        """By Slurm's node name, which is the host name of the pod's containers."""
        return workers(self._caches, cluster)
