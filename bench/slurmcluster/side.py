"""The two APIs that are compared: what their users apply and change, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.config.rest import Cluster
from bench.first_idle import ASKER
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.resource import Resource
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.api.slinky.nodeset import NODESETS
from penstock.local import install
from penstock.local.node import Node
from penstock.local.target import Images

WORKERS = 2
JAIL = "jail"
"""Name of the jail's PVC in the example."""
_CLUSTER = "correct-cpu-cluster"
_MAIN = "PartitionName=main Nodes=ALL Default=YES MaxTime="
_SLINKY_KINDS = ("nodesets", "loginsets", "restapis", "controllers")


@dataclass(frozen=True)
class Change:
    """A merge patch of one object."""

    resource: Resource[Any]
    name: str
    body: Json


@dataclass(frozen=True)
class Side:
    """One API."""

    title: str
    namespace: str
    objects: tuple[Json, ...]
    kinds: tuple[str, ...]
    """Kinds of the API, in the order in which they are deleted."""
    pod: str
    """Of slurmctld."""
    owner: str
    role: str
    """Label that distinguishes the pods."""
    images: tuple[str, ...] = field(repr=False)
    """Of the main container of each pod that stays: those of the plain pods."""
    worker_image: str
    partition: str
    has_jail: bool
    size: Callable[[int], Change]
    """Sets the number of workers."""
    max_time: Callable[[int], Change]
    """Sets MaxTime of the partition, in minutes."""

    @property
    def asker(self) -> tuple[str, ...]:
        """kubectl's arguments for the container in which sinfo runs."""
        return (self.pod, "-n", self.namespace, "-c", ASKER)

    def cluster(self, node: Node) -> Cluster:
        """Its Slurm cluster, once it runs."""
        slurmctld = (self.pod, "-n", self.namespace, "-c", "slurmctld")
        return Cluster(node, self.namespace, slurmctld, self.owner)


def slinky(images: Images) -> Side:
    """The quickstart."""
    roles = ("slurmctld", "slurmrestd", "slurmd", "slurmd", "login")
    namespace = "bench-slinky"
    return Side(
        title="quickstart",
        namespace=namespace,
        objects=_placed(install.documents("examples/quickstart.yaml"), namespace),
        kinds=tuple(f"{kind}.{NODESETS.group}" for kind in _SLINKY_KINDS),
        pod="slurm-controller-0",
        owner="controller/slurm",
        role="app.kubernetes.io/name",
        images=tuple(images.slurm.format(role=role) for role in roles),
        worker_image=images.slurm.format(role="slurmd"),
        partition="compute",
        has_jail=False,
        size=lambda count: Change(NODESETS, "compute", {"spec": {"replicas": count}}),
        max_time=lambda minutes: Change(
            NODESETS,
            "compute",
            {"spec": {"partition": {"enabled": True, "config": f"Default=YES MaxTime={minutes}"}}},
        ),
    )


def nebius(images: Images) -> Side:
    """The example of a SlurmCluster, with a partition that is declared."""
    objects = install.documents("examples/slurmcluster.yaml")
    for one in objects:
        if one["kind"] == SLURM_CLUSTERS.kind:
            one["spec"] |= _partitions("INFINITE")
    namespace = "bench-slurmcluster"
    roles = ("jail-slurmctld", "slurmrestd", "jail-slurmd", "jail-slurmd", "jail-login")
    return Side(
        title="SlurmCluster",
        namespace=namespace,
        objects=_placed(objects, namespace),
        kinds=(f"{SLURM_CLUSTERS.plural}.{SLURM_CLUSTERS.group}",),
        pod="controller-0",
        owner=f"slurmcluster/{_CLUSTER}",
        role="app.kubernetes.io/component",
        # The sixth pod is the one that writes files into the jail.
        images=(*(images.slurm.format(role=role) for role in roles), images.operator),
        worker_image=images.slurm.format(role="jail-slurmd"),
        partition="main",
        has_jail=True,
        size=lambda count: Change(
            SLURM_CLUSTERS, _CLUSTER, {"spec": {"slurmNodes": {"worker": {"size": count}}}}
        ),
        max_time=lambda minutes: Change(
            SLURM_CLUSTERS, _CLUSTER, {"spec": _partitions(str(minutes))}
        ),
    )


def _partitions(max_time: str) -> Json:
    line = f"{_MAIN}{max_time}"
    return {"partitionConfiguration": {"configType": "custom", "rawConfig": [line]}}


def _placed(objects: list[Json], namespace: str) -> tuple[Json, ...]:
    """The objects in a namespace of the bench's own, which may be deleted."""
    return tuple(
        {**one, "metadata": {**one["metadata"], "namespace": namespace}} for one in objects
    )
