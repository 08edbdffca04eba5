"""The part of a rollback's JSON patch that is the same for all kinds."""

from __future__ import annotations

from penstock.api.cluster.marks import ROLLED_BACK
from penstock.api.kubernetes.meta import Json, ObjectMeta


def noted(meta: ObjectMeta, value: str) -> list[Json]:
    """The steps that note the `value` as done, at the object in exactly this version."""
    return [
        # A replaced one that is another meanwhile is a conflict, a failed test an invalid request.
        {"op": "replace", "path": "/metadata/uid", "value": meta.uid},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
        {
            "op": "add",
            "path": f"/metadata/annotations/{ROLLED_BACK.replace('/', '~1')}",
            "value": value,
        },
    ]
