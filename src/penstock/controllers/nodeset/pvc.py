"""Creates the PVCs of worker pods, and sets their owners."""

from __future__ import annotations

import contextlib

import msgspec

from penstock.api.kubernetes.kinds import CLAIMS
from penstock.api.kubernetes.meta import Json
from penstock.catalog.event import Event
from penstock.controllers.runtime.report import Events
from penstock.controllers.workers.caches import WorkerCaches
from penstock.controllers.workers.source import WorkerSource
from penstock.decide.action import SetPvcOwners
from penstock.kube import AlreadyExistsError, Client, ConflictError, NotFoundError
from penstock.model.worker_slot import WorkerSlot


class PvcWriter:
    """PVCs of workers. They are created, and never changed but for their owners."""

    def __init__(self, client: Client, caches: WorkerCaches, events: Events) -> None:
        self._client = client
        self._caches = caches
        self._events = events

    async def make(self, source: WorkerSource, slot: WorkerSlot) -> None:
        """Create those of a slot that do not exist. Raises KubeError."""
        for manifest in source.pvcs(slot):
            meta = manifest["metadata"]
            if self._caches.pvcs.get(f"{meta['namespace']}/{meta['name']}") is not None:
                continue
            # A PVC of that name that somebody created beforehand serves as well.
            with contextlib.suppress(AlreadyExistsError):
                await self._client.create(CLAIMS, manifest)
                note = f"Created PVC {meta['name']}"
                self._events.normal(source.object, Event.SUCCESSFUL_CREATE, note, "Create")

    async def own(self, source: WorkerSource, action: SetPvcOwners) -> None:
        """Write a PVC's owners. One that has changed meanwhile is left to the next plan."""
        owners = [msgspec.to_builtins(one) for one in action.owners]
        meta: Json = {"uid": action.uid, "resourceVersion": action.resource_version}
        body: Json = {"metadata": {**meta, "ownerReferences": owners}}
        with contextlib.suppress(NotFoundError, ConflictError):
            space = source.workers.metadata.namespace
            await self._client.patch(CLAIMS, space, action.name, body)
