"""From a changed object to the keys that it matters to, for watches of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.kube.runtime.declaration import IndexBy, Lookup

T = TypeVar("T", bound=KubeObject)
Keys = Callable[[T, Lookup], Iterable[str]]

PODS_BY_NODE = IndexBy(PODS, lambda pod: [pod.spec.node_name or ""])
"""By name of the Kubernetes node; empty while a pod has none."""


def keys(objects: Iterable[KubeObject]) -> list[str]:
    """`namespace/name` of each."""
    return [one.metadata.key for one in objects]


def own_key(obj: KubeObject, _: Lookup) -> list[str]:
    """The key of the object itself."""
    return [obj.metadata.key]


def same_key(key: str, _: Lookup) -> list[str]:
    """For signals: the object of the cluster itself."""
    return [key]


def owner_of(resource: Resource[Any]) -> Keys[KubeObject]:
    """The key of the managing owner, if that is of this group and kind."""

    def keys_of(obj: KubeObject, _: Lookup) -> list[str]:
        owner = obj.metadata.controller
        if owner is None or not owner.is_kind(resource.group, resource.kind):
            return []
        return [f"{obj.metadata.namespace}/{owner.name}"]

    return keys_of


def owners_of(resource: Resource[Any]) -> Keys[KubeObject]:
    """The keys of all owners of this group and kind."""

    def keys_of(obj: KubeObject, _: Lookup) -> list[str]:
        space, owners = obj.metadata.namespace, obj.metadata.owner_references
        kind = resource.group, resource.kind
        return [f"{space}/{one.name}" for one in owners if one.is_kind(*kind)]

    return keys_of


def instance_of(component: str) -> Keys[Pod]:
    """The key in the labels of a pod of this component."""

    def keys_of(pod: Pod, _: Lookup) -> list[str]:
        labels = pod.metadata.labels
        if labels.get(app_labels.APP_NAME) != component:
            return []
        return [f"{pod.metadata.namespace}/{labels.get(app_labels.APP_INSTANCE, '')}"]

    return keys_of


def indexed(index: IndexBy[Any], value_of: Keys[T]) -> Keys[T]:
    """The keys of the objects that an index has for the keys of another function."""
    return lambda obj, lookup: [
        key for one in value_of(obj, lookup) for key in keys(lookup.by(index, one))
    ]


def any_of(*functions: Keys[T]) -> Keys[T]:
    """The keys of all these functions, in their order."""
    return lambda obj, lookup: [key for one in functions for key in one(obj, lookup)]


def spec_changed(old: Any, new: Any) -> bool:
    """Whether an object was created or deleted, or more than its status changed."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (
        before.generation != after.generation
        or before.deleting != after.deleting
        or before.uid != after.uid
    )


def labels_or_node_changed(old: Any, new: Any) -> bool:
    """Whether labels changed, or a pod was bound to its Kubernetes node."""
    if old is None or new is None:
        return True
    return old.metadata.labels != new.metadata.labels or getattr(
        old.spec, "node_name", None
    ) != getattr(new.spec, "node_name", None)
