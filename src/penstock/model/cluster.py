"""A Slurm cluster: one slurmctld and the objects that belong to it, of whatever API group."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.meta import Condition
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.model.object_ref import ObjectRef
from penstock.model.partition_spec import PartitionSpec


@dataclass(frozen=True, slots=True)
class ClusterMarks:
    """Label and annotation of one API. An empty key means that the API has none.

    `active` is the label of the slurmctld pod that works, of several. `restart` is an annotation of
    the cluster's object: each new value restarts slurmctld.
    """

    active: str
    restart: str


@dataclass(frozen=True, slots=True)
class AccountingLink:
    """The slurmdbd of a cluster: the object that the cluster names, and its conditions.

    `exists` is whether that object exists. An `external` slurmdbd does not run in
    Kubernetes: no condition describes its health.
    """

    namespace: str
    name: str
    exists: bool
    external: bool = False
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class SlurmNodeSet:
    """The nodes of one worker set in slurm.conf: a NodeSet line, by their common feature.

    `name` is that of feature and node set. `partition` has the words of its own PartitionName line,
    or is None.
    """

    declared_by: ObjectRef
    name: str
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """One slurmctld and what belongs to it.

    `conditions` are those of the declaring object. An `external` slurmctld does not run in
    Kubernetes. Clients reach slurmctld at `host` and `port`. `slurm_key` and `jwt_key` are the
    Secrets with the keys of auth/slurm and auth/jwt; where the cluster `has_munge`, the former is
    that of munge. `extra_conf` are the user's lines of slurm.conf.
    """

    declared_by: ObjectRef
    conditions: tuple[Condition, ...]
    external: bool
    host: str
    port: int
    slurm_key: SecretKeySelector
    jwt_key: SecretKeySelector
    accounting: AccountingLink | None
    extra_conf: str
    node_sets: tuple[SlurmNodeSet, ...] = ()
    partitions: tuple[PartitionSpec, ...] = ()
    has_munge: bool = False
