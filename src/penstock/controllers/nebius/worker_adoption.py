"""Takes over worker pods of the original, whose StatefulSets are orphaned."""

from __future__ import annotations

from typing import Any

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.kubernetes.meta import Json
from penstock.catalog.event import Event
from penstock.catalog.reasons.workers import WorkerReason
from penstock.controllers.nebius.advanced_stateful_sets import StatefulSetReleaser
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.worker_source import ClusterWorkers
from penstock.controllers.runtime.concurrency import gather
from penstock.controllers.runtime.report import Events
from penstock.controllers.workers.caches import WorkerCaches
from penstock.kube import ConflictError, InvalidError, NotFoundError
from penstock.kube.client.nesting import decode
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_slot import WorkerSlot
from penstock.render.nebius.worker.adopted_pod import adoption_patch

REQUEUE_S = 1.0
"""Pause while the garbage collector takes pods from their StatefulSet."""
_WAITING = WorkerReason.ADOPTING


class WorkerAdoption:
    """That of the workers of all objects of one kind."""

    def __init__(self, context: NebiusContext, caches: WorkerCaches, events: Events) -> None:
        self._client = context.client
        self._caches = caches
        self._events = events
        self._releaser = StatefulSetReleaser(context, events)

    async def run(self, source: ClusterWorkers) -> Finding | None:
        """Adopt what can be adopted; why nothing else may happen to the workers yet.

        Raises KubeError.
        """
        workers = source.workers
        name = workers.names.pod_prefix.removesuffix("-")
        if await self._releaser.release(source.object, name):
            return Finding(None, _WAITING, f"Waiting for the deletion of StatefulSet {name}")
        if not source.is_template_known:
            return None
        waiting, free = list[str](), list[Pod]()
        for pod in self._caches.conflicting_pods(workers):
            owner = pod.metadata.controller
            if not workers.selector.items() <= pod.metadata.labels.items():
                continue
            if owner is not None:
                if owner.kind == "StatefulSet" and owner.name == name:
                    waiting.append(pod.metadata.name)
            elif not pod.metadata.deleting:
                free.append(pod)
        await gather(self._adopt(source, pod) for pod in free)
        if waiting or free:
            words = f"Taking over {len(waiting) + len(free)} worker pods of StatefulSet {name}"
            return Finding(None, _WAITING, words)
        return None

    async def _adopt(self, source: ClusterWorkers, pod: Pod) -> None:
        """Become the controller of a pod that has none, unless it changed since it was read."""
        workers, meta = source.workers, pod.metadata
        try:
            body = await self._client.get_raw(PODS, meta.namespace, meta.name)
            live = decode(body, dict[str, Any])
            slot = slot_of(workers, meta.name)
            if slot is None or live["metadata"].get("uid") != meta.uid or _has_controller(live):
                return
            wanted = source.revision().hash
            patch, current = adoption_patch(workers, live, source.pod(slot), wanted)
            await self._client.patch_raw(PODS, meta.namespace, meta.name, patch, kind="json")
        except (NotFoundError, ConflictError, InvalidError):
            # It changed meanwhile: a watch event starts the next reconcile.
            return
        words = "as it is" if current else "until its Slurm node is idle"
        note = f"Took over pod {meta.name} of another operator; it stays {words}"
        self._events.normal(source.object, Event.POD_ADOPTED, note, "Adopt")


def slot_of(workers: WorkerSet, name: str) -> WorkerSlot | None:
    """The slot of a pod's name."""
    number = workers.names.ordinal_of(name)
    return None if number is None else WorkerSlot(name, workers.names.host(number), number)


def _has_controller(live: Json) -> bool:
    return any(one.get("controller") for one in live["metadata"].get("ownerReferences") or ())
