"""Names of SlurmClusters and NodeSets, of which the names of their objects are made.

Services and host names are DNS labels. Source: RFC 1035, 2.3.4; Kubernetes documentation, "Object
Names and IDs".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from penstock.api.admission import Problem, RelatedObjects
from penstock.api.nebius.names import IMPLICIT_NODE_SET, cluster_of, node_set_service
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster

LONGEST_LABEL: Final = 63
LONGEST_CLUSTER: Final = 40
"""Characters of a ClusterName. Source: slurm.conf(5), ClusterName."""
_SERVICE: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_HOST: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_ALL: Final = "all"


def cluster_name(obj: SlurmCluster) -> Iterator[Problem]:
    """A name of which no Service or ClusterName can be made."""
    name = obj.metadata.name
    if not _SERVICE.fullmatch(name):
        yield Problem(
            "metadata.name",
            f"{name[:60]!r} begins the names of Services: write small letters, digits and -, and a "
            "letter first",
        )
    if len(name) > LONGEST_CLUSTER:
        yield Problem(
            "metadata.name",
            f"it has {len(name)} characters and Slurm takes {LONGEST_CLUSTER}: choose a shorter "
            "name",
        )


def node_set_name(obj: NodeSet) -> Iterator[Problem]:
    """A name of which no host name, Service or node set of Slurm can be made."""
    name, cluster = obj.metadata.name, cluster_of(obj)
    if cluster and (len(cluster) > LONGEST_CLUSTER or not _SERVICE.fullmatch(cluster)):
        yield Problem("spec.clusterName", f"{cluster[:60]!r} can be the name of no SlurmCluster")
    if not _HOST.fullmatch(name):
        yield Problem(
            "metadata.name",
            f"{name[:60]!r} begins the host names of the nodes: write small letters, digits and -",
        )
    last = f"{name}-{max(obj.spec.replicas - 1, 0)}"
    for what, made in (
        ("host name", last),
        ("name of the Service", node_set_service(cluster, name)),
    ):
        if len(made) > LONGEST_LABEL:
            yield Problem(
                "metadata.name",
                f"the {what} has {len(made)} characters and DNS takes {LONGEST_LABEL}: choose a "
                "shorter name",
            )
    if name == _ALL:
        yield Problem(
            "metadata.name",
            f"{name!r} means all nodes of the cluster in a partition: choose another name",
        )


def node_set_conflicts(obj: NodeSet, related: RelatedObjects) -> Iterator[Problem]:
    """A NodeSet with the name of the workers that its SlurmCluster declares itself."""
    if obj.metadata.name == IMPLICIT_NODE_SET and any(
        one.metadata.name == cluster_of(obj) and one.spec.slurm_nodes.worker is not None
        for one in related.of(SlurmCluster)
    ):
        yield Problem(
            "metadata.name",
            f"{IMPLICIT_NODE_SET!r} is the set of spec.slurmNodes.worker of SlurmCluster "
            f"{cluster_of(obj)}: choose another name",
        )
