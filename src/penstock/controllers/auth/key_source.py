"""What an API gives so that a changed slurm.key of its clusters is rotated.

`K` is the type of the objects that declare clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.decide.auth.key_rotation import RotationView
from penstock.decide.observed.pod import slurm_node_name, slurmd_container, slurmd_started_at
from penstock.slurm.auth.key_rotation import Ring
from penstock.slurm.known import Unknown

K = TypeVar("K", bound=KubeObject, contravariant=True)


class KeySource(Protocol[K]):
    """The keys of auth/slurm of one API's clusters, and the pods that have them."""

    def key(self, obj: K) -> SecretKeySelector | None:
        """The source of slurm.key; None for a cluster with munge."""
        ...

    def ring_name(self, obj: K) -> str:
        """The name of the Secret with the key ring."""
        ...

    def labels(self, obj: K) -> Mapping[str, str]:
        """The labels of that Secret."""
        ...

    def first_ring(self, obj: K, key: bytes) -> Ring:
        """The key ring before any rotation."""
        ...

    async def view(self, obj: K, ring: Ring, key: bytes) -> RotationView:
        """The observed state of a rotation. Raises KubeError."""
        ...

    def marked(self, obj: K, ring: Ring) -> Iterable[tuple[Pod, int]]:
        """Pods whose kubelet is to refresh their keys, and how often it was asked before."""
        ...


def unable(pods: Iterable[Pod], mark: str) -> list[str]:
    """Names of pods that cannot show several keys, as they lack the annotation."""
    return [
        pod.metadata.name
        for pod in pods
        if not pod.metadata.deleting and mark not in pod.metadata.annotations
    ]


def slurmd_starts(
    workers: Sequence[Pod], key: str, connections: SlurmConnections
) -> dict[str, int] | None:
    """When the slurmd of each worker has read its keys; None while Slurm is silent.

    `key` is that of the object that declares the cluster.
    """
    running = [pod for pod in workers if _runs(pod)]
    if not running:
        # No need to ask Slurm: the mirror rarely accepts a list without any node.
        return {}
    link = connections.get(key)
    nodes = link.mirror.snapshot.nodes if link is not None else Unknown("")
    if isinstance(nodes, Unknown):
        return None
    found: dict[str, int] = {}
    for pod in running:
        node = nodes.value.get(slurm_node_name(pod))
        began = slurmd_started_at(pod)
        if node is None and pod.ready and began is not None:
            # slurmctld notifies only nodes that it has. This one registers again with the keys.
            found[slurm_node_name(pod)] = int(began)
            continue
        if node is None or "DOWN" in node.state:
            # It reads its keys when it starts.
            continue
        if node.slurmd_start_time:
            found[node.name] = node.slurmd_start_time
    return found


def _runs(pod: Pod) -> bool:
    """Whether its slurmd has read its keys: one that starts reads those that are there then."""
    slurmd = slurmd_container(pod)
    return slurmd is not None and slurmd.state.running is not None and not pod.metadata.deleting
