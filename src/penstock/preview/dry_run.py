"""What the objects of a file would be once they are applied, by the word of the API server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.resource import Resource
from penstock.base.whole_patch import whole_patch
from penstock.catalog.marks import kubernetes
from penstock.kube import Client, KubeError, Manager, NotFoundError
from penstock.preview.previewed_api import PreviewedApi

LAST_APPLIED = kubernetes.LAST_APPLIED.key
DryRunObject = tuple[str, Json]
"""A resource (`group/plural`) and the object."""


class RejectedError(Exception):
    """The API server would not take an object; the message names it and has the server's words."""


async def dry_run_objects(
    client: Client,
    documents: Iterable[Json],
    namespace: str,
    apis: Iterable[PreviewedApi[Any]],
) -> tuple[list[DryRunObject], list[str]]:
    """The objects after `kubectl apply`, and the kinds in the file that the operator never reads.

    Raises RejectedError; KubeError when the server cannot be asked.
    """
    by_kind: dict[tuple[str, str], Resource[Any]] = {}
    for api in apis:
        manager = Manager(client)
        api.store(manager)
        by_kind |= {(r.api_version, r.kind): r for r, _ in manager.watched}
    found: list[DryRunObject] = []
    unread: list[str] = []
    for document in documents:
        resource = by_kind.get((document.get("apiVersion", ""), document.get("kind", "")))
        if resource is None:
            unread.append(str(document.get("kind", "?")))
            continue
        meta = {**document.get("metadata", {})}
        if resource.namespaced:
            meta.setdefault("namespace", namespace)
        document = {**document, "metadata": meta}
        found.append(
            (f"{resource.group}/{resource.plural}", await _after(client, resource, document))
        )
    return found, unread


async def _after(client: Client, resource: Resource[Any], document: Json) -> Json:
    meta = document["metadata"]
    try:
        live: Json | None = msgspec.json.decode(
            await client.get_raw(resource, meta.get("namespace", ""), meta["name"])
        )
    except NotFoundError:
        live = None
    body = document if live is None else merge_patch(live, document)
    try:
        return await client.dry_run(resource, live, body)
    except KubeError as error:
        raise RejectedError(f"{document['kind']} {meta['name']}: {error}") from error


def merge_patch(live: Json, document: Json) -> Json:
    """The patch that `kubectl apply` sends: what the file has, and no more what it had before."""
    note = live["metadata"].get("annotations", {}).get(LAST_APPLIED)
    last: Json = msgspec.json.decode(note) if note else {}
    patch = whole_patch(last, document)
    return {k: v for k, v in patch.items() if k not in {"apiVersion", "kind"}}
