"""Brings an object to its manifest by server-side apply, with as few writes as possible."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, cast

import msgspec

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.resource import Resource
from penstock.kube.apply.difference import field_differences, owned_fields
from penstock.kube.apply.field_owners import Path, ownership_patch
from penstock.kube.client.client import Client
from penstock.kube.client.errors import NotFoundError, NotOursError
from penstock.kube.client.nesting import decode


@dataclass(frozen=True, slots=True)
class Applied:
    """What `ensure` did, what the object is now, and which paths were not as asked."""

    done: Literal["created", "updated", "unchanged"]
    live: Json
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Memo:
    """How an object looked after we applied a manifest that the server wrote differently."""

    manifest: str
    live: str


class Applier:
    """Server-side apply under one field manager, sent only when something differs.

    `takes_over` names managers whose updates become ours before the first apply. Our own is always
    one of them, for objects that were made by a plain create.
    """

    def __init__(self, client: Client, *, takes_over: Collection[str] = ()) -> None:
        self._client = client
        self._manager = client.field_manager
        self._takes_over = frozenset({self._manager, *takes_over})
        self._memos: dict[str, _Memo] = {}

    async def ensure(
        self,
        resource: Resource[Any],
        manifest: Json,
        live: Json | None,
        *,
        takes_over: Collection[str] = (),
        at_once: Collection[str] = (),
        leave: Collection[Path] = (),
        along_with: str = "",
    ) -> Applied:
        """Create or update; `live` is the whole object as last seen, with its managedFields.

        `takes_over` names more managers whose updates become ours: what they wrote and the manifest
        does not ask for goes. That happens with the next change, for managers in `at_once` also
        without one. Fields at the paths of `leave` stay theirs. With `along_with`, a path, the
        rest stays theirs as well until something at or below that path changes.

        An object that is missing in a cache is looked for once more before it is made, so that
        a lagging cache never overwrites what somebody else has put there. Raises NotOursError
        when the object has another controlling owner than the manifest, or none; KubeError.
        """
        if live is None:
            live = await self._get_live(resource, manifest)
        if live is None:
            # Not POST: that would own the server's defaults too, as updates, and a later apply
            # could not remove a field.
            body = await self._client.apply_raw(resource, manifest)
            return Applied("created", self._remember(manifest, body))
        _check_owner(manifest, live)
        changed = field_differences(manifest, live, self._manager)
        if changed and self._known(manifest, live, changed):
            changed = ()
        if along_with and not any(f"{path}.".startswith(f"{along_with}.") for path in changed):
            takes_over, at_once = (), ()
        if not changed and ownership_patch(live, self._manager, at_once, leave=leave) is not None:
            # An earlier version did not know the manager: it has a share in our fields.
            changed = ("metadata.managedFields",)
        if not changed:
            return Applied("unchanged", live)
        patch = ownership_patch(
            live, self._manager, self._takes_over.union(takes_over), leave=leave
        )
        if patch is not None:
            meta = live["metadata"]
            await self._client.patch_raw(
                resource, meta.get("namespace", ""), meta["name"], patch, kind="json"
            )
        # The uid prevents the apply from creating an object that was deleted in the meantime.
        body = await self._client.apply_raw(resource, _pinned(manifest, live))
        return Applied("updated", self._remember(manifest, body), changed)

    def forget(self, uid: str) -> None:
        """The object of that uid is gone."""
        self._memos.pop(uid, None)

    async def _get_live(self, resource: Resource[Any], manifest: Json) -> Json | None:
        meta = manifest["metadata"]
        try:
            body = await self._client.get_raw(resource, meta.get("namespace", ""), meta["name"])
        except NotFoundError:
            return None
        return decode(body, dict[str, Any])

    def _remember(self, manifest: Json, body: bytes) -> Json:
        live = decode(body, dict[str, Any])
        differs = field_differences(manifest, live, self._manager)
        uid = cast("str", live["metadata"].get("uid", ""))
        if differs:
            # The server stores it differently (a default, a webhook). The stored form counts as
            # equal to the manifest until one of the two changes.
            self._memos[uid] = _Memo(_hash(manifest), self._live_hash(live, differs))
        else:
            self._memos.pop(uid, None)
        return live

    def _known(self, manifest: Json, live: Json, differs: tuple[str, ...]) -> bool:
        memo = self._memos.get(live["metadata"].get("uid", ""))
        return memo == _Memo(_hash(manifest), self._live_hash(live, differs))

    def _live_hash(self, live: Json, differs: tuple[str, ...]) -> str:
        values = [_at(live, path) for path in differs]
        return _hash([list(differs), values, owned_fields(live, self._manager)])


def _check_owner(manifest: Json, live: Json) -> None:
    wanted = _controller(manifest)
    found = _controller(live)
    if wanted and wanted.get("uid") != found.get("uid"):
        meta = live["metadata"]
        owner = f"{found.get('kind')} {found.get('name')}" if found else "nobody"
        raise NotOursError(
            f"{live.get('kind', 'object')} {meta.get('namespace', '')}/{meta['name']} exists and "
            f"is controlled by {owner}"
        )


def _controller(obj: Json) -> Json:
    """The owner reference of the controller of an object; empty without one."""
    owners = cast("list[Json]", obj["metadata"].get("ownerReferences") or [])
    none: Json = {}
    return next((one for one in owners if one.get("controller")), none)


def _pinned(manifest: Json, live: Json) -> Json:
    uid = live["metadata"].get("uid")
    return {**manifest, "metadata": {**manifest["metadata"], "uid": uid}}


def _at(live: Json, path: str) -> Any:
    """The part of the object a path begins with: enough to see that it changed."""
    value: Any = live
    for step in path.replace("[", ".[").split("."):
        if step.startswith("[") or not isinstance(value, dict):
            return value
        value = cast("Json", value).get(step)
    return value


def _hash(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()
