"""Carry out what was decided about a NodeSet, looking again before anything that cannot be undone.

Kubernetes first (pods are made, marked), then Slurm (drained, undrained), then deletes. A delete
asks Slurm anew, puts the answer to the same guard that the decision used, and names the pod's uid
and resourceVersion, so that a pod or a node that changed in between stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import structlog

from penstock.api.core import PODS
from penstock.api.meta import Json
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.controllers.claims import Claims
from penstock.controllers.features import give_features
from penstock.controllers.gres import change_gres
from penstock.controllers.links import UNCONNECTED, Link
from penstock.controllers.loop import Tools
from penstock.controllers.metrics import POD_DELETES
from penstock.controllers.refusals import Refusals
from penstock.controllers.report import Events
from penstock.controllers.reservations import Reservations, held_by_others
from penstock.controllers.told import Told
from penstock.decide.action import (
    Action,
    AddFinalizer,
    CreateClaims,
    CreatePod,
    DeleteNodeRecord,
    DeletePod,
    DeleteReservation,
    DrainNode,
    Ground,
    OwnClaim,
    PatchPod,
    RemoveFinalizer,
    ResumeNode,
    SetNodeComment,
    SetNodeFeatures,
    SetNodeTopology,
    SetPodConditions,
    SetReservation,
    UndrainNode,
)
from penstock.decide.drain import reason_to_send
from penstock.decide.guard import may_delete
from penstock.decide.recheck import still_right
from penstock.decide.slots import Slot
from penstock.decide.slurm_view import SlurmView
from penstock.kube import AlreadyExistsError, Expectations, NotFoundError, NotOursError
from penstock.render import worker
from penstock.render.context import Cluster
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import BusyError, SlurmError
from penstock.slurm.rest.errors import NotFoundError as NoSuchNodeError

NEEDS_NO_SLURM = frozenset({Ground.NEVER_BOUND, Ground.FINISHED, Ground.ABANDONED})
AT_ONCE = 32
BESIDE = 4
"""In flight of what nobody waits for: a pod's conditions are as dear to the API server as three
pods, and those that are still to become Ready need it more."""

A = TypeVar("A")
T = TypeVar("T")
NodeAction = DrainNode | UndrainNode | ResumeNode

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Actor:
    """Does the actions of one NodeSet's plan."""

    def __init__(self, tools: Tools, events: Events, written: Expectations[Any]) -> None:
        self._client = tools.client
        self._world = tools.world
        self._events = events
        self._written = written
        self._claims = Claims(tools, events)
        self.refusals = Refusals(tools.client.clock)
        self.reservations = Reservations(tools.client.clock)

    async def act(
        self,
        nodeset: NodeSet,
        cluster: Cluster | None,
        actions: Sequence[Action],
        link: Link | None,
        *,
        abandoned: bool,
    ) -> bool:
        """Do all of them, in a safe order; whether nothing was left undone.

        What Slurm refuses, or what is no longer right by its fresh answer, is left. As nothing
        that is watched may change afterwards, the caller has to look again by itself then.
        `cluster` is needed to create pods, `link` to talk to Slurm; decisions that need one that
        is absent are not made. Raises KubeError.
        """
        with Told(self._events, nodeset) as told:
            return await self._act(nodeset, cluster, actions, link, told, abandoned=abandoned)

    async def _act(
        self,
        nodeset: NodeSet,
        cluster: Cluster | None,
        actions: Sequence[Action],
        link: Link | None,
        told: Told,
        *,
        abandoned: bool,
    ) -> bool:
        done: list[bool] = []
        if added := [one.finalizer for one in _of(actions, AddFinalizer)]:
            await self._finalizers(nodeset, (*nodeset.metadata.finalizers, *added))
        records = _of(actions, DeleteNodeRecord)
        if link is not None and link.client is not None:
            # Whether they go or not: the pods that make them anew do not wait for it.
            early = [one for one in records if one.renews is not None]
            await self._forget(nodeset, link, link.client, early, told)
        if cluster is not None:
            await self._create(nodeset, cluster, _of(actions, CreatePod), told)
            for one in _of(actions, CreateClaims):
                await self._claims.make(nodeset, one.slot)
        await _all(self._claims.own(nodeset, one) for one in _of(actions, OwnClaim))
        await _all(self._patch(nodeset, one, told) for one in _of(actions, PatchPod))
        told_pods = _of(actions, SetPodConditions)
        await _all((self._conditions(nodeset, one) for one in told_pods), BESIDE)
        if link is not None and link.client is not None:
            done += await self._tell_slurm(nodeset, link, link.client, actions, told)
        deletes = _of(actions, DeletePod)
        done += await self._delete(nodeset, link, deletes, told, abandoned=abandoned)
        if link is not None and link.client is not None:
            late = [one for one in records if one.renews is None]
            done += await self._forget(nodeset, link, link.client, late, told)
            planned = [
                one for one in actions if isinstance(one, SetReservation | DeleteReservation)
            ]
            key = nodeset.metadata.key
            done += await self.reservations.settle(key, link, link.client, planned, told)
        if ended := _of(actions, RemoveFinalizer):
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
        self, nodeset: NodeSet, cluster: Cluster, creates: Sequence[CreatePod], told: Told
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
                manifest = _manifest(cluster, nodeset, one.slot, revision, sssd)
                try:
                    await self._claims.make(nodeset, one.slot)
                    await self._create_one(nodeset, manifest, told)
                except Exception as error:
                    refused.append(error)

        await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(creates)))))
        if refused:
            raise refused[0]

    async def _create_one(self, nodeset: NodeSet, manifest: Json, told: Told) -> None:
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

    async def _patch(self, nodeset: NodeSet, action: PatchPod, told: Told) -> None:
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

    async def _tell_slurm(
        self,
        nodeset: NodeSet,
        link: Link,
        client: Slurmrestd,
        actions: Sequence[Action],
        told: Told,
    ) -> list[bool]:
        changes = [one for one in actions if isinstance(one, NodeAction)]
        comments, places = _of(actions, SetNodeComment), _of(actions, SetNodeTopology)
        features = _of(actions, SetNodeFeatures)
        done: list[bool] = []
        if not changes and not comments and not places and not features:
            return done
        if changes:
            link.mirror.poke()
            snapshot = await link.mirror.fresh()
            now = SlurmView.of(snapshot.nodes, snapshot.jobs)
            done += await _all(self._change(client, one, now, told) for one in changes)
        key = nodeset.metadata.key
        done += await _all(self._place(client, key, one, told) for one in places)
        done += await _all(self._comment(client, key, one, told) for one in comments)
        done += await _all(give_features(client, one, told) for one in features)
        # The next decision must be made on what Slurm says now, not on what it said before.
        await link.mirror.fresh()
        return done

    async def _change(
        self, client: Slurmrestd, action: NodeAction, now: SlurmView, told: Told
    ) -> bool:
        node = now.node(action.node)
        if node is None or not still_right(action, now):
            return False
        try:
            match action:
                case DrainNode():
                    reason = reason_to_send(node, action)
                    await client.update_node(action.node, state=["DRAIN"], reason=reason)
                case UndrainNode():
                    await client.update_node(action.node, state=["UNDRAIN"])
                case ResumeNode():
                    await client.update_node(action.node, state=["RESUME"])
        except SlurmError as error:
            told.warning("SlurmRefused", f"Node {action.node}: {error}", type(action).__name__)
            return False
        told.normal(action.why.reason, action.why.message, type(action).__name__)
        return True

    async def _comment(
        self, client: Slurmrestd, key: str, action: SetNodeComment, told: Told
    ) -> bool:
        # What somebody gave the node a moment ago would be lost.
        if action.features is not None and await self._features(client, action.node) != action.over:
            return False
        if action.gres is not None and not await self._gres(client, key, action, told):
            return False
        try:
            await client.update_node(
                action.node,
                comment=action.comment,
                features=action.features,
                active_features=action.features,
                weight=action.weight,
                extra=action.extra,
            )
        except SlurmError as error:
            log.info("node comment not written", node=action.node, error=str(error))
            if action.why is not None:
                told.warning("SlurmRefused", f"Node {action.node}: {error}", "UpdateNode")
            return False
        if action.why is not None:
            told.normal(action.why.reason, action.why.message, "UpdateNode")
        return True

    async def _features(self, client: Slurmrestd, name: str) -> tuple[str, ...] | None:
        try:
            return (await client.node(name)).features
        except SlurmError:
            return None

    async def _gres(self, client: Slurmrestd, key: str, action: SetNodeComment, told: Told) -> bool:
        wanted = action.gres or ""
        try:
            return await change_gres(client, action.node, wanted)
        except SlurmError as error:
            if error.refusal:
                self.refusals.gres_refused(key, wanted)
                note = f"Node {action.node} keeps its GRES until it has another pod: {error}"
                told.warning("SlurmRefused", note, "UpdateNode")
            return False

    async def _place(
        self, client: Slurmrestd, key: str, action: SetNodeTopology, told: Told
    ) -> bool:
        """A refusal is told by the NodeSet's condition, as long as it stands."""
        try:
            await client.update_node(action.node, topology=action.topology)
        except SlurmError as error:
            if error.refusal:
                self.refusals.refused(key, action.node, action.topology, str(error))
            return False
        self.refusals.taken(key, action.node)
        told.normal(action.why.reason, action.why.message, "UpdateNode")
        return True

    async def _delete(
        self,
        nodeset: NodeSet,
        link: Link | None,
        deletes: Sequence[DeletePod],
        told: Told,
        *,
        abandoned: bool,
    ) -> list[bool]:
        """Delete some at a time, each lot on an answer of its own: a large batch takes long."""
        done: list[bool] = []
        for start in range(0, len(deletes), AT_ONCE):
            lot = deletes[start : start + AT_ONCE]
            now = await self._slurm_for(link, lot)
            calls = (self._delete_one(nodeset, one, now, told, abandoned=abandoned) for one in lot)
            done += await _all(calls)
        return done

    async def _slurm_for(self, link: Link | None, deletes: Sequence[DeletePod]) -> SlurmView:
        """What Slurm says: asked now, when one of the deletes rests on its word."""
        if link is None:
            return SlurmView.of(UNCONNECTED, UNCONNECTED)
        snapshot = link.mirror.snapshot
        if any(one.guard not in NEEDS_NO_SLURM for one in deletes):
            link.mirror.poke()
            snapshot = await link.mirror.fresh()
        return SlurmView.of(snapshot.nodes, snapshot.jobs)

    async def _delete_one(
        self, nodeset: NodeSet, action: DeletePod, now: SlurmView, told: Told, *, abandoned: bool
    ) -> bool:
        space = nodeset.metadata.namespace
        pod = self._world.pods.get(f"{space}/{action.name}")
        if pod is None or pod.metadata.uid != action.uid:
            return True
        verdict = may_delete(pod, now, abandoned=abandoned)
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

    async def _forget(
        self,
        nodeset: NodeSet,
        link: Link,
        client: Slurmrestd,
        records: Sequence[DeleteNodeRecord],
        told: Told,
    ) -> list[bool]:
        """Delete records of nodes that no pod stands for any more."""
        if not records:
            return []
        link.mirror.poke()
        snapshot = await link.mirror.fresh()
        now = SlurmView.of(snapshot.nodes, snapshot.jobs)
        try:
            # slurmctld would take the node out of the reservation with its record. With its
            # NodeSet a node is gone for good.
            gone = nodeset.metadata.deleting
            kept = frozenset[str]() if gone else await held_by_others(client, nodeset)
        except SlurmError as error:
            log.info("node records kept", error=str(error))
            return [False]
        right = [one for one in records if one.node not in kept and still_right(one, now)]
        deleted = await _all(self._forget_one(client, one, told) for one in right)
        left = [one.node for one, done in zip(right, deleted, strict=True) if done]
        link.mirror.forget(left)
        await link.mirror.fresh()
        return [len(left) == len(records)]

    async def _forget_one(self, client: Slurmrestd, one: DeleteNodeRecord, told: Told) -> bool:
        """Whether the record is gone."""
        try:
            await client.delete_node(one.node)
        except NoSuchNodeError:
            pass
        except BusyError:
            return False
        except SlurmError as error:
            note = f"Record of node {one.node} stays: {error}"
            told.warning("SlurmRefused", note, "DeleteNodeRecord")
            return False
        told.normal(one.why.reason, one.why.message, "DeleteNodeRecord")
        return True


def _manifest(cluster: Cluster, nodeset: NodeSet, slot: Slot, revision: str, sssd: str) -> Json:
    if slot.ordinal is None:
        return worker.daemon_pod(
            cluster,
            nodeset,
            slot.pod,
            slot.host,
            slot.machine,
            revision_hash=revision,
            sssd_conf_hash=sssd,
        )
    return worker.pod(
        cluster,
        nodeset,
        slot.ordinal,
        revision_hash=revision,
        machine=slot.machine,
        sssd_conf_hash=sssd,
    )


def _of(actions: Sequence[Action], kind: type[A]) -> list[A]:
    return [one for one in actions if isinstance(one, kind)]


async def _all(calls: Iterable[Coroutine[Any, Any, T]], at_once: int = AT_ONCE) -> list[T]:
    """Run all, some at once. The first error is raised when all have ended."""
    limit = asyncio.Semaphore(at_once)

    async def one(call: Coroutine[Any, Any, T]) -> T:
        try:
            async with limit:
                return await call
        finally:
            # One that was called off before its turn would be missed as never awaited.
            call.close()

    ended = await asyncio.gather(*(one(call) for call in calls), return_exceptions=True)
    results: list[T] = []
    for result in ended:
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results
