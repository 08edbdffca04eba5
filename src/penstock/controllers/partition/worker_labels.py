"""What Kubernetes says of the pods of a cluster's Slurm nodes."""

from __future__ import annotations

from penstock.controllers.caches.kubernetes import KubernetesCaches
from penstock.render.config.partition import Worker
from penstock.render.slinky.inputs import ClusterInputs


def workers(caches: KubernetesCaches, cluster: ClusterInputs) -> dict[str, Worker]:
    """By Slurm's node name, which is what the pod's containers call their host."""
    if not any(one.spec.selector is not None for one in cluster.partitions):
        return {}
    found: dict[str, Worker] = {}
    for nodeset in cluster.nodesets:
        for pod in caches.pods_of.get(nodeset.metadata.uid):
            node = caches.nodes.get(pod.spec.node_name or "")
            labels = node.metadata.labels if node is not None else {}
            found[pod.host] = Worker(pod.metadata.labels, labels)
    return found
