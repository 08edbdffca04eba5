"""Write into an object's spec what somebody changed in Slurm itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.kube import (
    BadRequestError,
    Client,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)

T = TypeVar("T", bound=KubeObject)


async def adopt_into_spec(
    client: Client, resource: Resource[T], obj: T, spec: Mapping[str, Any]
) -> str | None:
    """Merge a patch into the spec of an object at its observed resourceVersion.

    Returns why the API server rejected it, an empty text on success, and None on a conflict: a
    user's change in the meantime is kept and reconciled next. Raises KubeError.
    """
    meta = obj.metadata
    held: Json = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    body: Json = {"metadata": held, "spec": dict(spec)}
    try:
        await client.patch(resource, meta.namespace, meta.name, body)
    except (ConflictError, NotFoundError):
        return None
    except (BadRequestError, InvalidError, ForbiddenError) as error:
        return str(error)
    return ""
