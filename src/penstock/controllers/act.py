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
from penstock.controllers.links import UNCONNECTED, Link
from penstock.controllers.loop import Tools
from penstock.controllers.metrics import POD_DELETES
from penstock.controllers.report import Events
from penstock.decide.action import (
    Action,
    AddFinalizer,
    CreatePod,
    DeleteNodeRecord,
    DeletePod,
    DrainNode,
    Ground,
    PatchPod,
    RemoveFinalizer,
    ResumeNode,
    SetNodeComment,
    SetPodConditions,
    UndrainNode,
)
from penstock.decide.drain import reason_to_send
from penstock.decide.guard import may_delete
from penstock.decide.recheck import still_right
from penstock.decide.slurm_view import SlurmView
from penstock.kube import AlreadyExistsError, Expectations, NotFoundError, NotOursError
from penstock.render import worker
from penstock.render.context import Cluster
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import BusyError, SlurmError
from penstock.slurm.rest.errors import NotFoundError as NoSuchNodeError

NEEDS_NO_SLURM = frozenset({Ground.NEVER_BOUND, Ground.FINISHED, Ground.ABANDONED})
AT_ONCE = 32

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
        done: list[bool] = []
        for one in _of(actions, AddFinalizer):
            held = (*nodeset.metadata.finalizers, one.finalizer)
            await self._finalizers(nodeset, held)
        if cluster is not None:
            await self._create(nodeset, cluster, _of(actions, CreatePod))
        await _all(self._patch(nodeset, one) for one in _of(actions, PatchPod))
        await _all(self._conditions(nodeset, one) for one in _of(actions, SetPodConditions))
        if link is not None and link.client is not None:
            done += await self._tell_slurm(nodeset, link, link.client, actions)
        done += await self._delete(nodeset, link, _of(actions, DeletePod), abandoned=abandoned)
        if link is not None and link.client is not None:
            records = _of(actions, DeleteNodeRecord)
            done += await self._forget(nodeset, link, link.client, records)
        for one in _of(actions, RemoveFinalizer):
            self._events.normal(nodeset, one.why.reason, one.why.message, "Finalize")
            left = [name for name in nodeset.metadata.finalizers if name != one.finalizer]
            await self._finalizers(nodeset, left)
        return all(done)

    async def _finalizers(self, nodeset: NodeSet, finalizers: Iterable[str]) -> None:
        meta = nodeset.metadata
        body = {"resourceVersion": meta.resource_version, "finalizers": list(finalizers)}
        try:
            await self._client.patch(NODESETS, meta.namespace, meta.name, {"metadata": body})
        except NotFoundError:
            return

    async def _create(
        self, nodeset: NodeSet, cluster: Cluster, creates: Sequence[CreatePod]
    ) -> None:
        """Create some at a time: a refusal stops the rest instead of being repeated for each."""
        for start in range(0, len(creates), AT_ONCE):
            chunk = creates[start : start + AT_ONCE]
            await _all(self._create_one(nodeset, cluster, one) for one in chunk)

    async def _create_one(self, nodeset: NodeSet, cluster: Cluster, action: CreatePod) -> None:
        manifest = worker.pod(cluster, nodeset, action.ordinal)
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
            self._events.normal(
                nodeset, "SuccessfulCreate", f"Created pod {meta['name']}", "Create"
            )
        self._written.wrote(nodeset.metadata.key, pod)

    async def _patch(self, nodeset: NodeSet, action: PatchPod) -> None:
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
            self._events.normal(nodeset, action.why.reason, action.why.message, "Cordon")

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
        self, nodeset: NodeSet, link: Link, client: Slurmrestd, actions: Sequence[Action]
    ) -> list[bool]:
        changes = [one for one in actions if isinstance(one, NodeAction)]
        comments = _of(actions, SetNodeComment)
        done: list[bool] = []
        if not changes and not comments:
            return done
        if changes:
            link.mirror.poke()
            snapshot = await link.mirror.fresh()
            now = SlurmView.of(snapshot.nodes, snapshot.jobs)
            done += await _all(self._change(nodeset, client, one, now) for one in changes)
        done += await _all(self._comment(client, one) for one in comments)
        # The next decision must be made on what Slurm says now, not on what it said before.
        await link.mirror.fresh()
        return done

    async def _change(
        self, nodeset: NodeSet, client: Slurmrestd, action: NodeAction, now: SlurmView
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
            self._events.warning(
                nodeset, "SlurmRefused", f"Node {action.node}: {error}", type(action).__name__
            )
            return False
        self._events.normal(nodeset, action.why.reason, action.why.message, type(action).__name__)
        return True

    async def _comment(self, client: Slurmrestd, action: SetNodeComment) -> bool:
        try:
            await client.update_node(action.node, comment=action.comment)
        except SlurmError as error:
            log.info("node comment not written", node=action.node, error=str(error))
            return False
        return True

    async def _delete(
        self,
        nodeset: NodeSet,
        link: Link | None,
        deletes: Sequence[DeletePod],
        *,
        abandoned: bool,
    ) -> list[bool]:
        """Delete some at a time, each lot on an answer of its own: a large batch takes long."""
        done: list[bool] = []
        for start in range(0, len(deletes), AT_ONCE):
            lot = deletes[start : start + AT_ONCE]
            now = await self._slurm_for(link, lot)
            calls = (self._delete_one(nodeset, one, now, abandoned=abandoned) for one in lot)
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
        self, nodeset: NodeSet, action: DeletePod, now: SlurmView, *, abandoned: bool
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
        told = f"Deleted pod {action.name}: {verdict.why.message}"
        self._events.normal(nodeset, "SuccessfulDelete", told, "Delete")
        return True

    async def _forget(
        self,
        nodeset: NodeSet,
        link: Link,
        client: Slurmrestd,
        records: Sequence[DeleteNodeRecord],
    ) -> list[bool]:
        """Delete records of nodes that no pod stands for any more."""
        if not records:
            return []
        link.mirror.poke()
        snapshot = await link.mirror.fresh()
        now = SlurmView.of(snapshot.nodes, snapshot.jobs)
        gone: list[str] = []
        for one in records:
            if not still_right(one, now):
                continue
            try:
                await client.delete_node(one.node)
            except NoSuchNodeError:
                pass
            except BusyError:
                continue
            except SlurmError as error:
                told = f"Record of node {one.node} stays: {error}"
                self._events.warning(nodeset, "SlurmRefused", told, "DeleteNodeRecord")
                continue
            gone.append(one.node)
            self._events.normal(nodeset, one.why.reason, one.why.message, "DeleteNodeRecord")
        link.mirror.forget(gone)
        await link.mirror.fresh()
        return [len(gone) == len(records)]


def _of(actions: Sequence[Action], kind: type[A]) -> list[A]:
    return [one for one in actions if isinstance(one, kind)]


async def _all(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all, some at once. The first error is raised when all have ended."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(call: Coroutine[Any, Any, T]) -> T:
        async with limit:
            return await call

    ended = await asyncio.gather(*(one(call) for call in calls), return_exceptions=True)
    results: list[T] = []
    for result in ended:
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results
