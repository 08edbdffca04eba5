"""Carries out the plan of a worker set; what cannot be undone is checked again before.

Kubernetes first (pods are created and marked), then Slurm (nodes are drained and undrained), then
deletes. A delete asks Slurm again, evaluates the guard of the plan on the answer, and names the
pod's uid and resourceVersion, so that a pod or a node that changed in between stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import structlog

from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.kubernetes.meta import Json
from penstock.catalog.event import Event
from penstock.controllers.nodeset.pvc import PvcWriter
from penstock.controllers.rollout.maintenance import Reservations
from penstock.controllers.runtime.concurrency import AT_ONCE, gather, of_kind
from penstock.controllers.runtime.event_batch import EventBatch
from penstock.controllers.runtime.metrics import POD_DELETES
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import UNCONNECTED, SlurmConnection
from penstock.controllers.slurm_node.actor import SlurmActor
from penstock.controllers.slurm_node.registration import NodeRegistrations
from penstock.controllers.slurm_node.rejections import Rejections
from penstock.controllers.workers.caches import WorkerCaches
from penstock.controllers.workers.source import WorkerSource
from penstock.decide.action import (
    Action,
    AddFinalizer,
    CreatePod,
    CreatePvcs,
    DeleteNodeRecord,
    DeletePod,
    DeleteReservation,
    DeletionGround,
    PatchPod,
    RegisterNode,
    RemoveFinalizer,
    RemoveStandIns,
    SetPodConditions,
    SetPvcOwners,
    SetReservation,
)
from penstock.decide.drain.deletion_guard import can_delete
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.kube import (
    AlreadyExistsError,
    Cache,
    Client,
    Expectations,
    NotFoundError,
    NotOursError,
)
from penstock.kube.runtime.state import StateByUid
from penstock.model.worker_set import WorkerSet

NEEDS_NO_SLURM = frozenset(
    {DeletionGround.NEVER_BOUND, DeletionGround.FINISHED, DeletionGround.CONTROLLER_GONE}
)
FRESH_S = 1.0
"""Seconds for which Slurm's answer is good for a delete. Nothing else happens in between, so more
pass only where the process waits for a core, and somebody may have undrained the node meanwhile."""
BESIDE = 4
"""Requests in flight for pod conditions. Each costs the API server as much as three pods, and
nothing waits for them, while pods that start do need the API server."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Actor:
    """Carries out the actions of plans."""

    def __init__(
        self, client: Client, objects: Cache[Any], caches: WorkerCaches, events: Events
    ) -> None:
        self._client = client
        self._caches = caches
        self._events = events
        self._written = StateByUid(objects, lambda: Expectations[Pod](caches.pods, client.clock))
        self._claims = PvcWriter(client, caches, events)
        self.rejections = Rejections(objects, client.clock)
        self._slurm = SlurmActor(self.rejections)
        self.reservations = Reservations(objects, client.clock)
        self.registrations = NodeRegistrations(objects, client.clock)

    def has_seen_own_writes(self, workers: WorkerSet) -> bool:
        """Whether the cache shows all that was written for a worker set."""
        return self._written.of(workers).satisfied()

    async def act(
        self,
        source: WorkerSource,
        actions: Sequence[Action],
        connection: SlurmConnection | None,
        *,
        is_orphaned: bool,
    ) -> bool:
        """Do all of them, in a safe order; whether nothing was left undone.

        An action that Slurm rejects, or that its fresh answer no longer allows, is left undone. As
        nothing that is watched may change afterwards, the caller has to requeue then. Pods are
        created only while the cluster is ready, and Slurm is asked only through a `connection`.
        Raises KubeError.
        """
        with EventBatch(self._events, source.object) as batch:
            return await self._act(source, actions, connection, batch, is_orphaned=is_orphaned)

    async def _act(
        self,
        source: WorkerSource,
        actions: Sequence[Action],
        connection: SlurmConnection | None,
        batch: EventBatch,
        *,
        is_orphaned: bool,
    ) -> bool:
        done: list[bool] = []
        workers = source.workers
        meta = workers.metadata
        if added := [one.finalizer for one in of_kind(actions, AddFinalizer)]:
            await self._finalizers(source, (*meta.finalizers, *added))
        records = of_kind(actions, DeleteNodeRecord)
        if connection is not None and connection.client is not None:
            # Whether they go or not: the pods that create them again do not wait for it.
            early = [one for one in records if one.renews is not None]
            await self._slurm.delete_records(source, connection, connection.client, early, batch)
        if source.is_cluster_ready:
            await self._create(source, of_kind(actions, CreatePod), batch)
            for one in of_kind(actions, CreatePvcs):
                await self._claims.make(source, one.slot)
        await gather(self._claims.own(source, one) for one in of_kind(actions, SetPvcOwners))
        await gather(self._patch(workers, one, batch) for one in of_kind(actions, PatchPod))
        conditions = of_kind(actions, SetPodConditions)
        await gather((self._conditions(workers, one) for one in conditions), BESIDE)
        if connection is not None and connection.client is not None:
            client = connection.client
            done += await self._slurm.update_nodes(source, connection, client, actions, batch)
            lost = [one for one in actions if isinstance(one, RegisterNode | RemoveStandIns)]
            await self.registrations.apply(workers, connection, client, lost, batch)
        deletes = of_kind(actions, DeletePod)
        done += await self._delete(source, connection, deletes, batch, is_orphaned=is_orphaned)
        if connection is not None and connection.client is not None:
            client = connection.client
            late = [one for one in records if one.renews is None]
            done += await self._slurm.delete_records(source, connection, client, late, batch)
            planned = [
                one for one in actions if isinstance(one, SetReservation | DeleteReservation)
            ]
            done += await self.reservations.apply(workers, connection, client, planned, batch)
        if ended := of_kind(actions, RemoveFinalizer):
            for one in ended:
                batch.normal(one.why.reason, one.why.message, "Finalize")
            gone = {one.finalizer for one in ended}
            await self._finalizers(source, set(meta.finalizers) - gone)
        return all(done)

    async def _finalizers(self, source: WorkerSource, finalizers: Iterable[str]) -> None:
        meta = source.workers.metadata
        body = {"resourceVersion": meta.resource_version, "finalizers": list(finalizers)}
        try:
            await self._client.patch(source.resource, meta.namespace, meta.name, {"metadata": body})
        except NotFoundError:
            return

    async def _create(
        self, source: WorkerSource, creates: Sequence[CreatePod], batch: EventBatch
    ) -> None:
        """Create some at a time: a rejection stops the rest instead of being repeated for each."""
        waiting = iter(creates)
        refused: list[Exception] = []

        async def work() -> None:
            for one in waiting:
                if refused:
                    return
                manifest = source.pod(one.slot)
                manifest["metadata"]["labels"] |= source.workers.chart_labels
                try:
                    await self._claims.make(source, one.slot)
                    await self._create_one(source.workers, manifest, batch)
                except Exception as error:
                    refused.append(error)

        await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(creates)))))
        if refused:
            raise refused[0]

    async def _create_one(self, workers: WorkerSet, manifest: Json, batch: EventBatch) -> None:
        meta = manifest["metadata"]
        try:
            pod = await self._client.create(PODS, manifest)
        except AlreadyExistsError:
            # Our own, when a first attempt was cut; else somebody has taken the name.
            pod = await self._client.get(PODS, meta["namespace"], meta["name"])
            owner = pod.metadata.controller
            if owner is None or owner.uid != workers.metadata.uid:
                raise NotOursError(
                    f"Pod {meta['name']} exists and is not of this {workers.kind}: "
                    "delete or rename it"
                ) from None
        else:
            batch.normal(Event.SUCCESSFUL_CREATE, f"Created pod {meta['name']}", "Create")
        self._written.of(workers).wrote(pod)

    async def _patch(self, workers: WorkerSet, action: PatchPod, batch: EventBatch) -> None:
        metadata: Json = {"uid": action.uid}
        if action.resource_version:
            # What the user did to the pod meanwhile must be seen before it is marked as ours.
            metadata["resourceVersion"] = action.resource_version
        if action.labels:
            metadata["labels"] = dict(action.labels)
        if action.annotations:
            metadata["annotations"] = dict(action.annotations)
        try:
            pod = await self._client.patch(
                PODS, workers.metadata.namespace, action.name, {"metadata": metadata}
            )
        except NotFoundError:
            return
        self._written.of(workers).wrote(pod)
        if action.why is not None:
            batch.normal(action.why.reason, action.why.message, "Cordon")

    async def _conditions(self, workers: WorkerSet, action: SetPodConditions) -> None:
        changes: list[Json] = [
            {
                "type": one.type,
                "status": one.status,
                "message": one.message or "",
                "lastTransitionTime": one.last_transition_time,
            }
            for one in action.conditions
        ]
        changes += [{"$patch": "delete", "type": name} for name in action.remove]
        body: Json = {"metadata": {"uid": action.uid}, "status": {"conditions": changes}}
        try:
            pod = await self._client.patch(
                PODS,
                workers.metadata.namespace,
                action.name,
                body,
                kind="strategic",
                subresource="status",
            )
        except NotFoundError:
            return
        self._written.of(workers).wrote(pod)

    async def _delete(
        self,
        source: WorkerSource,
        connection: SlurmConnection | None,
        deletes: Sequence[DeletePod],
        batch: EventBatch,
        *,
        is_orphaned: bool,
    ) -> list[bool]:
        """Delete some at a time, each lot on an answer of its own: a large batch takes long."""
        done: list[bool] = []
        for start in range(0, len(deletes), AT_ONCE):
            lot = deletes[start : start + AT_ONCE]
            by_slurm = _needs_slurm(lot)
            # Nobody else of this process ends a drain between the answer and the deletes.
            async with connection.states if connection and by_slurm else nullcontext():
                now = await self._slurm_for(connection, lot)
                good_until = self._client.clock.monotonic() + FRESH_S
                if source.has_newer():
                    # It may be wanted again.
                    return [*done, False]
                calls = (
                    self._delete_one(
                        source.workers,
                        one,
                        now,
                        batch,
                        good_until=good_until,
                        is_orphaned=is_orphaned,
                    )
                    for one in lot
                )
                done += await gather(calls)
        return done

    async def _slurm_for(
        self, connection: SlurmConnection | None, deletes: Sequence[DeletePod]
    ) -> SlurmSnapshot:
        """The state of Slurm: a fresh answer, when one of the deletes depends on it."""
        if connection is None:
            return SlurmSnapshot.of(UNCONNECTED, UNCONNECTED)
        snapshot = connection.mirror.snapshot
        if _needs_slurm(deletes):
            connection.mirror.poll_soon()
            snapshot = await connection.mirror.poll()
        return SlurmSnapshot.of(snapshot.nodes, snapshot.jobs)

    async def _delete_one(
        self,
        workers: WorkerSet,
        action: DeletePod,
        now: SlurmSnapshot,
        batch: EventBatch,
        *,
        good_until: float,
        is_orphaned: bool,
    ) -> bool:
        space = workers.metadata.namespace
        pod = self._caches.pods.get(f"{space}/{action.name}")
        if pod is None or pod.metadata.uid != action.uid:
            return True
        forgotten = action.guard is DeletionGround.FORGOTTEN
        verdict = can_delete(
            pod,
            now,
            abandoned=is_orphaned,
            forgotten=forgotten,
            not_rebooted=action.guard is DeletionGround.NOT_REBOOTED,
        )
        if verdict.ground is None:
            log.info("pod kept", pod=action.name, reason=verdict.why.reason)
            return False
        if _needs_slurm([action]) and self._client.clock.monotonic() > good_until:
            log.info("pod kept", pod=action.name, reason="the answer of Slurm is too old")
            return False
        try:
            await self._client.delete(
                PODS,
                space,
                action.name,
                uid=action.uid,
                resource_version=action.resource_version,
                # Slurm's answer is good for this moment; a later attempt asks it again.
                repeat=False,
            )
        except NotFoundError:
            return True
        POD_DELETES.labels(_ground(workers, verdict.ground)).inc()
        self._written.of(workers).deleted(pod)
        note = f"Deleted pod {action.name}: {verdict.why.message}"
        batch.normal(Event.SUCCESSFUL_DELETE, note, "Delete")
        return True


def _needs_slurm(deletes: Iterable[DeletePod]) -> bool:
    """Whether one of the deletes depends on the state of Slurm."""
    return any(one.guard not in NEEDS_NO_SLURM for one in deletes)


def _ground(workers: WorkerSet, ground: DeletionGround) -> str:
    """The ground in the words of the API that declares the workers: a cluster is of its kind."""
    is_of_cluster = ground is DeletionGround.CONTROLLER_GONE
    return f"{workers.wording.cluster_kind}Gone" if is_of_cluster else ground.value
