"""Orphans StatefulSets whose pods are taken over, so that their deletion keeps the pods."""

from __future__ import annotations

import contextlib
from typing import Any

from penstock.api.kubernetes.kinds import STATEFUL_SETS, StatefulSet
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.nebius.advanced_stateful_set import ADVANCED_STATEFUL_SETS, FINALIZERS
from penstock.catalog.event import Event
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.report import Events
from penstock.kube import ConflictError, NotFoundError

_ORPHAN = "orphan"
"""Finalizer by which the garbage collector takes owner references off the pods first."""


class StatefulSetReleaser:
    """Those of all SlurmClusters and NodeSets.

    Source: Kubernetes documentation, "Garbage Collection", orphaned dependents.
    """

    def __init__(self, context: NebiusContext, events: Events) -> None:
        self._client = context.client
        self._caches = context.caches
        self._events = events

    def advanced(self, of: KubeObject, name: str) -> StatefulSet | None:
        """OpenKruise's StatefulSet of that name, if `of` controls it."""
        found = self._caches.advanced_stateful_sets.get(f"{of.metadata.namespace}/{name}")
        return found if found is not None and _is_of(found, of) else None

    def plain(self, of: KubeObject, name: str) -> StatefulSet | None:
        """The StatefulSet of `apps/v1` of that name, if `of` controls it."""
        found = self._caches.stateful_sets.get(f"{of.metadata.namespace}/{name}")
        return found if found is not None and _is_of(found, of) else None

    async def release(self, of: KubeObject, name: str) -> bool:
        """Orphan those of a name in both groups; whether there are any. Raises KubeError."""
        found: list[tuple[Resource[Any], StatefulSet | None]] = [
            (ADVANCED_STATEFUL_SETS, self.advanced(of, name)),
            (STATEFUL_SETS, self.plain(of, name)),
        ]
        for resource, one in found:
            if one is not None:
                await self.orphan(of, resource, one)
        return any(one is not None for _, one in found)

    async def orphan(self, of: KubeObject, resource: Resource[Any], found: StatefulSet) -> None:
        """Delete a StatefulSet without its pods. One that OpenKruise should finish is finished."""
        meta = found.metadata
        with contextlib.suppress(NotFoundError, ConflictError):
            if not meta.deleting:
                await self._client.delete(
                    resource, meta.namespace, meta.name, uid=meta.uid, propagation="Orphan"
                )
                note = f"Deleted StatefulSet {meta.name} of {resource.group}; its pods stay"
                self._events.normal(of, Event.STATEFUL_SET_RELEASED, note, "Adopt")
            elif _ORPHAN not in meta.finalizers:
                # Its controller may be gone, or wait for pods that are no longer its own.
                left = [one for one in meta.finalizers if FINALIZERS not in one]
                if len(left) < len(meta.finalizers):
                    body = {"uid": meta.uid, "resourceVersion": meta.resource_version}
                    change = {"metadata": {**body, "finalizers": left}}
                    await self._client.patch(resource, meta.namespace, meta.name, change)


def _is_of(found: StatefulSet, of: KubeObject) -> bool:
    owner = found.metadata.controller
    return owner is not None and owner.uid == of.metadata.uid
