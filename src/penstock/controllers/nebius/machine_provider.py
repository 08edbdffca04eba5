"""Who replaces the machine of a Kubernetes node.

Another provider implements `MachineProvider` and is given to `NodeReplacementReconciler`.
"""

from __future__ import annotations

from typing import Protocol

from penstock.api.kubernetes.kinds import NODES, Node
from penstock.kube import Client


class MachineProvider(Protocol):
    """Replaces machines, whose Kubernetes nodes are cordoned and have no workers."""

    async def replace(self, node: Node, /) -> None:
        """Have the machine of exactly this node replaced, by its uid. Raises KubeError.

        It is asked again until the node is deleted, also by another process: asking twice for one
        uid must be as asking once.
        """
        ...


class KubernetesProvider:
    """Deletes the Kubernetes node: an autoscaler or the cloud's controller deletes its machine."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def replace(self, node: Node, /) -> None:
        """Delete the node. Raises KubeError."""
        await self._client.delete(NODES, "", node.metadata.name, uid=node.metadata.uid)
