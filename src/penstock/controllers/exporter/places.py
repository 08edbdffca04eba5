"""Where worker pods are: NodeSet and NVLink group, by watches of pods and Kubernetes nodes.

A ServiceAccount without these rights has the same metrics without the two labels.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from msgspec import field

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.nebius import labels
from penstock.controllers.exporter.snapshot import Place
from penstock.kube import Cache, Client

NVLINK_GROUP: Final = "topology.nebius.com/nvl-instance-group-id"
"""Label of a Kubernetes node."""


class _PodSpec(KubeStruct, frozen=True):
    """The Kubernetes node of a pod."""

    node_name: str = ""


class _Pod(KubeObject, frozen=True):
    """A worker pod."""

    spec: _PodSpec = field(default_factory=_PodSpec)


class _Node(KubeObject, frozen=True):
    """A Kubernetes node with the label."""


_PODS: Final = Resource("", "v1", "Pod", "pods", _Pod, optional=True, forbidden_is_absent=True)
_NODES: Final = Resource(
    "", "v1", "Node", "nodes", _Node, namespaced=False, optional=True, forbidden_is_absent=True
)


class Places:
    """The places of all workers of one cluster."""

    def __init__(self, client: Client, namespace: str, cluster: str) -> None:
        selector = f"{app_labels.APP_INSTANCE}={cluster},{labels.NODE_SET}"
        self._pods = Cache(client, _PODS, namespaces=(namespace,), labels=selector)
        self._nodes = Cache(client, _NODES, labels=NVLINK_GROUP)

    def by_node(self) -> Mapping[str, Place]:
        """Places by Slurm node, which has the name of its pod."""
        return {pod.metadata.name: self._place(pod) for pod in self._pods}

    def _place(self, pod: _Pod) -> Place:
        node = self._nodes.get(pod.spec.node_name) if pod.spec.node_name else None
        group = "" if node is None else node.metadata.labels.get(NVLINK_GROUP, "")
        return Place(group, pod.metadata.labels.get(labels.NODE_SET, ""))

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            group.create_task(self._nodes.run())
