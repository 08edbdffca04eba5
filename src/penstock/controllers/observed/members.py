"""The objects that belong to a Controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import Node, Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.penstock.partition import PARTITIONS, Partition
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.loginset import LOGINSETS, LoginSet
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.api.slinky.restapi import RESTAPIS, RestApi
from penstock.controllers.observed.watching import PODS_BY_NODE, keys, owner_of
from penstock.kube.runtime.declaration import IndexBy, Lookup

T = TypeVar("T", bound=KubeObject)

ClusterMember: TypeAlias = NodeSet | RestApi | LoginSet | Partition
"""A kind that belongs to a Controller."""


def cluster_keys(member: ClusterMember, _: Lookup | None = None) -> list[str]:
    """Key of the Controller that an object belongs to, whether that exists or not.

    None for a Controller of another namespace: a name in a reference is no right to its keys, its
    configuration or its nodes.
    """
    ref, namespace = member.spec.controller_ref, member.metadata.namespace
    return [f"{namespace}/{ref.name}"] if ref.namespace in ("", namespace) else []


NODESETS_BY_CLUSTER = IndexBy(NODESETS, cluster_keys)
RESTAPIS_BY_CLUSTER = IndexBy(RESTAPIS, cluster_keys)
LOGINSETS_BY_CLUSTER = IndexBy(LOGINSETS, cluster_keys)
PARTITIONS_BY_CLUSTER = IndexBy(PARTITIONS, cluster_keys)


def _all_following_nodes(nodeset: NodeSet) -> list[str]:
    daemons = nodeset.spec.scaling_mode == "DaemonSet"
    return [""] if daemons or nodeset.spec.pin_to_node else []


NODESETS_FOLLOWING_NODES = IndexBy(NODESETS, _all_following_nodes)
"""Under one value all NodeSets to which a Kubernetes node matters that has no pod of theirs."""


def same_namespace(obj: KubeObject, every: Iterable[T]) -> Iterator[T]:
    """The objects of an object's namespace."""
    return (one for one in every if one.metadata.namespace == obj.metadata.namespace)


def members_of(index: IndexBy[T]) -> Callable[[str, Lookup], list[str]]:
    """For signals: from the key of a Controller to the keys of its members of one kind."""
    return lambda key, lookup: [one.metadata.key for one in lookup.by(index, key)]


def clusters_following_nodes(key: str, lookup: Lookup) -> list[str]:
    """A Controller that depends on the nodes that its slurmctld has.

    An external one does, and one with a Partition whose nodes are chosen one by one.
    """
    one = lookup.get(CONTROLLERS, key)
    external = one is not None and one.spec.external
    by_node = any(map(_follows_nodes, lookup.by(PARTITIONS_BY_CLUSTER, key)))
    return [key] if external or by_node else []


def clusters_selecting_worker(pod: Pod, lookup: Lookup) -> list[str]:
    """Key of the Controller of a worker pod, if a Partition of it selects workers."""
    key = f"{pod.metadata.namespace}/{pod.metadata.labels.get(slinky_labels.CLUSTER, '')}"
    return [key] if any(map(_selects, lookup.by(PARTITIONS_BY_CLUSTER, key))) else []


def clusters_selecting_node(node: Node, lookup: Lookup) -> list[str]:
    """As `clusters_selecting_worker`, for the workers on a Kubernetes node."""
    pods = lookup.by(PODS_BY_NODE, node.metadata.name)
    return list(dict.fromkeys(k for pod in pods for k in clusters_selecting_worker(pod, lookup)))


def nodesets_on_node(node: Node, lookup: Lookup) -> list[str]:
    """Keys of the NodeSets with a pod on a Kubernetes node, and of those that may get one there."""
    pods, owners = lookup.by(PODS_BY_NODE, node.metadata.name), owner_of(NODESETS)
    others = keys(lookup.by(NODESETS_FOLLOWING_NODES, ""))
    return [*(key for pod in pods for key in owners(pod, lookup)), *others]


def nodesets_with_partition(key: str, lookup: Lookup) -> list[str]:
    """For signals: the NodeSets of a Controller that have a partition of their own."""
    found = lookup.by(NODESETS_BY_CLUSTER, key)
    return [one.metadata.key for one in found if one.spec.partition is not None]


def nodesets_with_external_partition(key: str, lookup: Lookup) -> list[str]:
    """As `nodesets_with_partition`, where slurmctld is external: its file is not ours."""
    one = lookup.get(CONTROLLERS, key)
    return nodesets_with_partition(key, lookup) if one is not None and one.spec.external else []


def worker_of(obj: KubeObject, _: Lookup | None = None) -> list[str]:
    """Key of the NodeSet of a worker's object, by its labels."""
    meta = obj.metadata
    return [f"{meta.namespace}/{meta.labels.get(app_labels.APP_INSTANCE, '')}"]


def _follows_nodes(partition: Partition) -> bool:
    return bool(partition.spec.nodes) or _selects(partition)


def _selects(partition: Partition) -> bool:
    return partition.spec.selector is not None
