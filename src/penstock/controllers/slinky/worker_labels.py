"""Labels of Kubernetes for the pods of a cluster's Slurm nodes."""

from __future__ import annotations

from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.render.config.partition import Worker
from penstock.render.slinky.inputs import ClusterInputs


def workers(caches: SlinkyCaches, cluster: ClusterInputs) -> dict[str, Worker]:
    """Return the labels of pods and their Kubernetes nodes, by Slurm node name."""
    if not any(one.spec.selector is not None for one in cluster.partitions):
        return {}
    found: dict[str, Worker] = {}
    for nodeset in cluster.nodesets:
        for pod in caches.workers_of(nodeset):
            node = caches.nodes.get(pod.spec.node_name or "")
            labels = node.metadata.labels if node is not None else {}
            found[pod.host] = Worker(pod.metadata.labels, labels)
    return found
