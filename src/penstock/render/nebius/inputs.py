"""The data from which the manifests of a SlurmCluster are rendered."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster, SlurmClusterSpec
from penstock.api.nebius.version_defaults import has_older_shape, versioned_values


@dataclass(frozen=True, slots=True)
class Images:
    """Images of containers for which a SlurmCluster names none; the operator's settings."""

    operator: str
    slurmrestd: str
    backup: str = ""


@dataclass(frozen=True, slots=True)
class ClusterInputs:
    """One SlurmCluster and what belongs to it."""

    cluster: SlurmCluster
    images: Images
    prefix: str
    """Prefix of the names of workloads: `api.nebius.names.workload_prefix`."""
    node_sets: tuple[NodeSet, ...] = ()
    """NodeSets that name the cluster, in any order."""
    cluster_domain: str = "cluster.local"
    scaled_down: bool = False
    """Whether the daemons and logins have no pods: maintenance, once the workers are gone."""
    slurmdbd: str = ""
    """Host and port of the slurmdbd in slurm.conf in force; empty without one."""
    runs_as_root: bool = False
    """Whether slurmctld runs as root, as that of the original: SlurmUser of slurm.conf in force."""
    loads_database: bool = False
    """Whether the database has pods although the daemons have none: a Restore loads it."""
    clients_key: str = ""
    """Names the key of auth/slurm with which slurmdbd is to begin; empty with munge."""
    has_user_namespaces: bool = True
    """Whether pods may have a user namespace of their own on the Kubernetes nodes."""

    @property
    def name(self) -> str:
        """Name of the SlurmCluster."""
        return self.cluster.metadata.name

    @property
    def namespace(self) -> str:
        """Namespace of everything that belongs to the cluster."""
        return self.cluster.metadata.namespace

    @property
    def spec(self) -> SlurmClusterSpec:
        """The declared cluster."""
        return self.cluster.spec

    @property
    def is_older(self) -> bool:
        """Whether the workers are part of the SlurmCluster, as up to version 2.0."""
        return has_older_shape(self.spec)

    @property
    def cluster_type(self) -> str:
        """`gpu` or `cpu` in the older shape; empty in the current one."""
        return versioned_values(self.spec).cluster_type or ""

    @property
    def has_gpus(self) -> bool:
        """Whether any NodeSet has GPUs."""
        return any(one.spec.gpu.enabled for one in self.node_sets)

    def replicas(self, declared: int) -> int:
        """Pods of a workload that declares so many."""
        return 0 if self.scaled_down else max(declared, 0)

    def database_replicas(self, declared: int) -> int:
        """Pods of the database, which rests with the daemons."""
        return max(declared, 0) if self.loads_database else self.replicas(declared)

    def fqdn(self, service: str) -> str:
        """The whole name of a Service of the cluster."""
        return f"{service}.{self.namespace}.svc.{self.cluster_domain}"
