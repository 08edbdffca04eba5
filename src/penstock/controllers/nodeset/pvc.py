"""Make the claims of worker pods, and say who takes them along."""

from __future__ import annotations

import contextlib

import msgspec

from penstock.api.kubernetes.kinds import CLAIMS
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.nodeset import NodeSet
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.decide.action import OwnClaim
from penstock.kube import AlreadyExistsError, ConflictError, NotFoundError
from penstock.model.worker_slot import WorkerSlot
from penstock.render.slinky.nodeset import worker_pod as worker


class Claims:
    """PersistentVolumeClaims of NodeSets. They are made and never changed but for their owners."""

    def __init__(self, tools: Context, events: Events) -> None:
        self._client = tools.client
        self._world = tools.world
        self._events = events

    async def make(self, nodeset: NodeSet, slot: WorkerSlot) -> None:
        """Make those of a place that are not there. Raises KubeError."""
        if not nodeset.spec.volume_claim_templates:
            return
        if slot.ordinal is None:
            manifests = worker.node_pvcs(nodeset, slot.slurm_node)
        else:
            manifests = worker.worker_pvcs(nodeset, slot.ordinal)
        for manifest in manifests:
            meta = manifest["metadata"]
            if self._world.claims.get(f"{meta['namespace']}/{meta['name']}") is not None:
                continue
            # A claim of that name that somebody made beforehand serves as well.
            with contextlib.suppress(AlreadyExistsError):
                await self._client.create(CLAIMS, manifest)
                note = f"Created claim {meta['name']}"
                self._events.normal(nodeset, "SuccessfulCreate", note, "Create")

    async def own(self, nodeset: NodeSet, action: OwnClaim) -> None:
        """Write a claim's owners. One that has changed meanwhile is looked at anew."""
        owners = [msgspec.to_builtins(one) for one in action.owners]
        meta: Json = {"uid": action.uid, "resourceVersion": action.resource_version}
        body: Json = {"metadata": {**meta, "ownerReferences": owners}}
        with contextlib.suppress(NotFoundError, ConflictError):
            await self._client.patch(CLAIMS, nodeset.metadata.namespace, action.name, body)
