"""Carry out what was decided about a NodeSet, looking again before anything that cannot be undone.

Kubernetes first (pods are made, marked), then Slurm (drained, undrained), then deletes. A delete
asks Slurm anew, puts the answer to the same guard that the decision used, and names the pod's uid
and resourceVersion, so that a pod or a node that changed in between stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import structlog

from penstock.api.kubernetes.kinds import PODS
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.controllers.nodeset.pvc import Claims
from penstock.controllers.rollout.maintenance import Reservations
from penstock.controllers.runtime.concurrency import AT_ONCE, gather, of_kind
from penstock.controllers.runtime.event_batch import EventBatch
from penstock.controllers.runtime.metrics import POD_DELETES
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import UNCONNECTED, SlurmConnection
from penstock.controllers.slurm_node.actor import SlurmActor
from penstock.controllers.slurm_node.registration import NodeRegistrations
from penstock.controllers.slurm_node.rejections import Refusals
from penstock.decide.action import (
    Action,
    AddFinalizer,
    CreateClaims,
    CreatePod,
    DeleteNodeRecord,
    DeletePod,
    DeleteReservation,
    DeletionGround,
    OwnClaim,
    PatchPod,
    RegisterNode,
    RemoveFinalizer,
    RemoveStandIns,
    SetPodConditions,
    SetReservation,
)
from penstock.decide.drain.deletion_guard import can_delete
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.kube import AlreadyExistsError, Expectations, NotFoundError, NotOursError
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_slot import WorkerSlot
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset import worker_pod as worker

NEEDS_NO_SLURM = frozenset(
    {DeletionGround.NEVER_BOUND, DeletionGround.FINISHED, DeletionGround.CONTROLLER_GONE}
)
BESIDE = 4
"""In flight of what nobody waits for: a pod's conditions are as dear to the API server as three
pods, and those that are still to become Ready need it more."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Actor:
    """Does the actions of one NodeSet's plan."""

    def __init__(self, tools: Context, events: Events, written: Expectations[Any]) -> None:
        self._client = tools.client
        self._world = tools.world
        self._events = events
        self._written = written
        self._claims = Claims(tools, events)
        self.refusals = Refusals(tools.client.clock)
        self._slurm = SlurmActor(tools.world, self.refusals)
        self.reservations = Reservations(tools.client.clock)
        self.registrations = NodeRegistrations(tools.client.clock)

    def forget(self, key: str) -> None:
        """The NodeSet is gone."""
        for one in (self.refusals, self.reservations, self.registrations):
            one.forget(key)

    async def act(
        self,
        nodeset: NodeSet,
        workers: WorkerSet,
        cluster: ClusterInputs | None,
        actions: Sequence[Action],
        link: SlurmConnection | None,
        *,
        abandoned: bool,
    ) -> bool:
        """Do all of them, in a safe order; whether nothing was left undone.

        What Slurm refuses, or what is no longer right by its fresh answer, is left. As nothing
        that is watched may change afterwards, the caller has to look again by itself then.
        `cluster` is needed to create pods, `link` to talk to Slurm; decisions that need one that
        is absent are not made. Raises KubeError.
        """
        with EventBatch(self._events, nodeset) as told:
            return await self._act(
                nodeset, workers, cluster, actions, link, told, abandoned=abandoned
            )

    async def _act(
        self,
        nodeset: NodeSet,
        workers: WorkerSet,
        cluster: ClusterInputs | None,
        actions: Sequence[Action],
        link: SlurmConnection | None,
        told: EventBatch,
        *,
        abandoned: bool,
    ) -> bool:
        done: list[bool] = []
        if added := [one.finalizer for one in of_kind(actions, AddFinalizer)]:
            await self._finalizers(nodeset, (*nodeset.metadata.finalizers, *added))
        records = of_kind(actions, DeleteNodeRecord)
        if link is not None and link.client is not None:
            # Whether they go or not: the pods that make them anew do not wait for it.
            early = [one for one in records if one.renews is not None]
            await self._slurm.forget(nodeset, workers, link, link.client, early, told)
        if cluster is not None:
            await self._create(nodeset, workers, cluster, of_kind(actions, CreatePod), told)
            for one in of_kind(actions, CreateClaims):
                await self._claims.make(nodeset, one.slot)
        await gather(self._claims.own(nodeset, one) for one in of_kind(actions, OwnClaim))
        await gather(self._patch(nodeset, one, told) for one in of_kind(actions, PatchPod))
        told_pods = of_kind(actions, SetPodConditions)
        await gather((self._conditions(nodeset, one) for one in told_pods), BESIDE)
        if link is not None and link.client is not None:
            done += await self._slurm.tell(nodeset, workers, link, link.client, actions, told)
            again = [one for one in actions if isinstance(one, RegisterNode | RemoveStandIns)]
            key = nodeset.metadata.key
            await self.registrations.settle(key, link, link.client, again, told)
        deletes = of_kind(actions, DeletePod)
        done += await self._delete(nodeset, link, deletes, told, abandoned=abandoned)
        if link is not None and link.client is not None:
            late = [one for one in records if one.renews is None]
            done += await self._slurm.forget(nodeset, workers, link, link.client, late, told)
            planned = [
                one for one in actions if isinstance(one, SetReservation | DeleteReservation)
            ]
            key = nodeset.metadata.key
            done += await self.reservations.settle(key, link, link.client, planned, told)
        if ended := of_kind(actions, RemoveFinalizer):
            for one in ended:
                told.normal(one.why.reason, one.why.message, "Finalize")
            gone = {one.finalizer for one in ended}
            await self._finalizers(nodeset, set(nodeset.metadata.finalizers) - gone)
        return all(done)

    async def _finalizers(self, nodeset: NodeSet, finalizers: Iterable[str]) -> None:
        meta = nodeset.metadata
        body = {"resourceVersion": meta.resource_version, "finalizers": list(finalizers)}
        try:
            await self._client.patch(NODESETS, meta.namespace, meta.name, {"metadata": body})
        except NotFoundError:
            return

    async def _create(
        self,
        nodeset: NodeSet,
        workers: WorkerSet,
        cluster: ClusterInputs,
        creates: Sequence[CreatePod],
        told: EventBatch,
    ) -> None:
        """Create some at a time: a refusal stops the rest instead of being repeated for each."""
        revision, known = worker.revision(nodeset).hash, self._world.sssd_of(nodeset)
        sssd = known if isinstance(known, str) else ""
        waiting = iter(creates)
        refused: list[Exception] = []

        async def work() -> None:
            for one in waiting:
                if refused:
                    return
                manifest = _pod(cluster, nodeset, one.slot, revision, sssd)
                manifest["metadata"]["labels"] |= workers.chart_labels
                try:
                    await self._claims.make(nodeset, one.slot)
                    await self._create_one(nodeset, manifest, told)
                except Exception as error:
                    refused.append(error)

        await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(creates)))))
        if refused:
            raise refused[0]

    async def _create_one(self, nodeset: NodeSet, manifest: Json, told: EventBatch) -> None:
        meta = manifest["metadata"]
        try:
            pod = await self._client.create(PODS, manifest)
        except AlreadyExistsError:
            # Our own, when a first attempt was cut; else somebody has taken the name.
            pod = await self._client.get(PODS, meta["namespace"], meta["name"])
            owner = pod.metadata.controller
            if owner is None or owner.uid != nodeset.metadata.uid:
                raise NotOursError(
                    f"Pod {meta['name']} exists and is not of this NodeSet: delete or rename it"
                ) from None
        else:
            told.normal("SuccessfulCreate", f"Created pod {meta['name']}", "Create")
        self._written.wrote(nodeset.metadata.key, pod)

    async def _patch(self, nodeset: NodeSet, action: PatchPod, told: EventBatch) -> None:
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
                PODS, nodeset.metadata.namespace, action.name, {"metadata": metadata}
            )
        except NotFoundError:
            return
        self._written.wrote(nodeset.metadata.key, pod)
        if action.why is not None:
            told.normal(action.why.reason, action.why.message, "Cordon")

    async def _conditions(self, nodeset: NodeSet, action: SetPodConditions) -> None:
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
                nodeset.metadata.namespace,
                action.name,
                body,
                kind="strategic",
                subresource="status",
            )
        except NotFoundError:
            return
        self._written.wrote(nodeset.metadata.key, pod)

    async def _delete(
        self,
        nodeset: NodeSet,
        link: SlurmConnection | None,
        deletes: Sequence[DeletePod],
        told: EventBatch,
        *,
        abandoned: bool,
    ) -> list[bool]:
        """Delete some at a time, each lot on an answer of its own: a large batch takes long."""
        done: list[bool] = []
        for start in range(0, len(deletes), AT_ONCE):
            lot = deletes[start : start + AT_ONCE]
            now = await self._slurm_for(link, lot)
            if self._world.has_newer(nodeset):
                # It may be wanted again.
                return [*done, False]
            calls = (self._delete_one(nodeset, one, now, told, abandoned=abandoned) for one in lot)
            done += await gather(calls)
        return done

    async def _slurm_for(
        self, link: SlurmConnection | None, deletes: Sequence[DeletePod]
    ) -> SlurmSnapshot:
        """What Slurm says: asked now, when one of the deletes rests on its word."""
        if link is None:
            return SlurmSnapshot.of(UNCONNECTED, UNCONNECTED)
        snapshot = link.mirror.snapshot
        if any(one.guard not in NEEDS_NO_SLURM for one in deletes):
            link.mirror.poll_soon()
            snapshot = await link.mirror.poll()
        return SlurmSnapshot.of(snapshot.nodes, snapshot.jobs)

    async def _delete_one(
        self,
        nodeset: NodeSet,
        action: DeletePod,
        now: SlurmSnapshot,
        told: EventBatch,
        *,
        abandoned: bool,
    ) -> bool:
        space = nodeset.metadata.namespace
        pod = self._world.pods.get(f"{space}/{action.name}")
        if pod is None or pod.metadata.uid != action.uid:
            return True
        forgotten = action.guard is DeletionGround.FORGOTTEN
        verdict = can_delete(pod, now, abandoned=abandoned, forgotten=forgotten)
        if verdict.ground is None:
            log.info("pod kept", pod=action.name, reason=verdict.why.reason)
            return False
        try:
            await self._client.delete(
                PODS,
                space,
                action.name,
                uid=action.uid,
                resource_version=action.resource_version,
                # Slurm's answer is good for this moment; a later attempt asks it anew.
                repeat=False,
            )
        except NotFoundError:
            return True
        POD_DELETES.labels(verdict.ground.value).inc()
        self._written.deleted(nodeset.metadata.key, pod)
        note = f"Deleted pod {action.name}: {verdict.why.message}"
        told.normal("SuccessfulDelete", note, "Delete")
        return True


def _pod(
    cluster: ClusterInputs, nodeset: NodeSet, slot: WorkerSlot, revision: str, sssd: str
) -> Json:
    if slot.ordinal is None:
        return worker.node_pod(
            cluster,
            nodeset,
            slot.pod,
            slot.slurm_node,
            slot.node,
            revision_hash=revision,
            sssd_conf_hash=sssd,
        )
    return worker.pod(
        cluster,
        nodeset,
        slot.ordinal,
        revision_hash=revision,
        kubernetes_node=slot.node,
        sssd_conf_hash=sssd,
    )
