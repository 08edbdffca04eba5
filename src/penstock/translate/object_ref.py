"""From an object's kind and metadata to a reference."""

from __future__ import annotations

from typing import Any

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.model.object_ref import ObjectRef


def object_ref(resource: Resource[Any], obj: KubeObject) -> ObjectRef:
    """The reference to an object of that resource."""
    meta = obj.metadata
    return ObjectRef(resource.group, resource.kind, meta.namespace, meta.name, meta.uid)
