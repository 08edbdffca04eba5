"""Write a status when it is not what it should be, and only then."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.spec_parts import Status
from penstock.base.whole_patch import whole_patch
from penstock.kube import Client, NotFoundError

T = TypeVar("T", bound=KubeObject)


async def write_status(
    client: Client, resource: Resource[T], obj: T, new: Status, *, first: bool = False
) -> bool:
    """Send what differs from the cached object's status as one merge patch.

    The cache may not show our last write yet. So a status of another generation is sent whole, or
    it would be a mixture: the new generation with what was found of the one before. So is the
    `first` one of an object.

    Returns whether anything was sent. An object that is gone needs no status.
    """
    wanted = _plain(new)
    patch = merge_patch(_plain(status_of(obj)), wanted)
    if not patch:
        return False
    if first or not new.identity.isdisjoint(patch):
        # So is the first status: a count of zero is news then, and some fields must be there.
        patch = wanted | patch
    meta = obj.metadata
    try:
        # The uid keeps the status of a deleted object off another one of the same name.
        body: Json = {"metadata": {"uid": meta.uid}, "status": patch}
        await client.patch(resource, meta.namespace, meta.name, body, subresource="status")
    except NotFoundError:
        return False
    return True


def merge_patch(old: Json, new: Json) -> Json:
    """The JSON merge patch (RFC 7386) that makes `old` be `new`; empty when they are equal.

    An object in it that differs is there with all its fields: they were found together, as a
    revision and what it was made of. Some of them alone would mix with what another write has left.
    """
    patch: Json = {}
    for key in old.keys() | new.keys():
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            patch[key] = whole_patch(cast("Json", before), cast("Json", after))
        else:
            patch[key] = after
    return patch


def _plain(status: Status) -> Json:
    return cast("dict[str, Any]", msgspec.to_builtins(status))


def status_of(obj: Any) -> Status:
    """The status of an object of any of our kinds."""
    status: Status = obj.status
    return status
