"""Owner references of rendered objects."""

from __future__ import annotations

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.registry import resource_of


def owner(obj: KubeObject, *, controller: bool = True) -> Json:
    """An ownerReference to `obj`: as its one manager, or as one of several owners.

    Items of a list may come without their kind, so it is taken from the type.
    """
    resource = resource_of(obj)
    reference: Json = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": obj.metadata.name,
        "uid": obj.metadata.uid,
        "blockOwnerDeletion": True,
    }
    if controller:
        reference["controller"] = True
    return reference
