"""What an API gives so that partitions of its clusters are changed in a running slurmctld.

The changes, the removal and the comparison of partitions name no kind of any API group. `K` is the
type of the objects that declare clusters, `C` that of a cluster as its slurm.conf is rendered from.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Protocol, TypeVar

from penstock.api.kubernetes.kinds import Pod, StatefulSet
from penstock.api.kubernetes.meta import KubeObject
from penstock.controllers.observed.cluster_state import PartitionOverrides
from penstock.controllers.runtime.report import Events
from penstock.model.cluster import Cluster
from penstock.render.config.partition import Worker

K = TypeVar("K", bound=KubeObject, contravariant=True)
C = TypeVar("C")


class PartitionSource(Protocol[K, C]):
    """The clusters of one API. Reading is synchronous and sends nothing."""

    # Of the object that declares a cluster

    def is_external(self, obj: K) -> bool:
        """Whether its slurmctld is external: nothing is written for it."""
        ...

    def overrides(self, obj: K) -> PartitionOverrides:
        """Its partitions that slurm.conf has otherwise than declared; changes are kept."""
        ...

    def startup_conf(self, obj: K) -> str | None:
        """The slurm.conf with which slurmctld starts; None before its first one."""
        ...

    def runs_with_startup(self, obj: K) -> bool:
        """Whether the startup files are the last known good ones."""
        ...

    def cluster(self, obj: K) -> C:
        """The cluster as it is to be rendered, with the overrides."""
        ...

    def accepted(self, obj: K) -> C | None:
        """The cluster with the object's own lines that Slurm has, while it rejects others."""
        ...

    def slurmctld_pods(self, obj: K) -> tuple[Pod, ...]:
        """The pods of slurmctld, the active one first."""
        ...

    def workload(self, obj: K) -> StatefulSet | None:
        """The StatefulSet of slurmctld's pods, with the operator's last write."""
        ...

    def has_slurmrestd(self, obj: K) -> bool:
        """Whether a slurmrestd is declared, through which jobs can be known."""
        ...

    def has_own_object(self, obj: K, partition: str) -> bool:
        """Whether a partition has an object of its own, which reports its rejection."""
        ...

    def report_removed_keys(
        self, obj: K, events: Events, texts: tuple[str, str], only: Container[str]
    ) -> None:
        """Emit events about keys of these partitions that the second slurm.conf lacks."""
        ...

    # Of a cluster

    def model(self, cluster: C) -> Cluster:
        """The cluster as decisions read it."""
        ...

    def slurm_conf(self, cluster: C) -> str:
        """Its slurm.conf."""
        ...

    def retained(self, cluster: C) -> frozenset[str]:
        """Partitions that are not declared and stay in slurm.conf, as jobs may be in them."""
        ...

    def kept(self, cluster: C) -> frozenset[str]:
        """Partitions that stay as they are, whatever is declared."""
        ...

    def keeping(self, cluster: C, partitions: frozenset[str], text: str = "") -> C:
        """The cluster in which these partitions, and no others, stay as in a slurm.conf."""
        ...

    def freeing(self, cluster: C, partitions: frozenset[str]) -> C:
        """The cluster whose slurm.conf no longer retains these partitions."""
        ...

    def workers(self, cluster: C) -> Mapping[str, Worker]:
        """Labels of pods and Kubernetes nodes by Slurm node, where a partition selects by them."""
        ...
