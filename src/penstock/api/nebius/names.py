"""Names of the objects of a SlurmCluster and of its NodeSets, as users and their scripts know them.

Names of StatefulSets and Deployments may have a prefix: `workload_prefix`.
"""

from __future__ import annotations

from typing import Final

from penstock.api.nebius.labels import PARENT_CLUSTER
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster

IMPLICIT_NODE_SET: Final = "worker"
"""Node set of `spec.slurmNodes.worker`: its pods and Slurm nodes are `worker-<n>`."""
MUNGE_KEY: Final = "munge.key"
JWT_KEY: Final = "rest_jwt.key"
SLURMCTLD_PORT: Final = 6817
SPOOL: Final = "worker-spool"
"""Volume of a worker with the state of slurmd, and the template of its PVC."""


def cluster_of(nodeset: NodeSet) -> str:
    """The SlurmCluster of a NodeSet; empty when it has none."""
    return nodeset.spec.cluster_name or nodeset.metadata.annotations.get(PARENT_CLUSTER, "")


def workload_prefix(cluster: SlurmCluster, *, keeps_plain_names: bool, is_second: bool) -> str:
    """Prefix of the names of StatefulSets and Deployments.

    None in the shape with `spec.slurmNodes.worker`, whose scripts name `controller-0`, and where
    the cluster already has a StatefulSet `controller` (`keeps_plain_names`). A cluster beside
    another one with plain names (`is_second`) has `<cluster>-`, as those of later versions.
    """
    plain = cluster.spec.slurm_nodes.worker is not None and not is_second
    return "" if keeps_plain_names or plain else f"{cluster.metadata.name}-"


def populate_job(cluster: str) -> str:
    """The Job that fills the jail."""
    return f"{cluster}-populate-jail"


def service(cluster: str, component: str) -> str:
    """The Service of controller, login, accounting, rest, login-headless, worker or nodeset."""
    return f"{cluster}-{component}-svc"


def munge_secret(cluster: str) -> str:
    """The Secret with the key of munge."""
    return f"{cluster}-munge"


def jwt_secret(cluster: str) -> str:
    """The Secret with the key of auth/jwt."""
    return f"{cluster}-rest-jwt-key"
