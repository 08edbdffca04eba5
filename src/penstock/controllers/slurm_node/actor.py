"""Changes the nodes of a worker set in Slurm as planned, as far as Slurm's fresh answer allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import structlog

from penstock.catalog.event import Event
from penstock.controllers.rollout.maintenance import reserved_by_others
from penstock.controllers.runtime.concurrency import gather, of_kind
from penstock.controllers.runtime.event_batch import EventBatch
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.controllers.slurm_node.features import give_features
from penstock.controllers.slurm_node.gres_change import change_gres
from penstock.controllers.slurm_node.rejections import Rejections
from penstock.controllers.workers.source import WorkerSource
from penstock.decide.action import (
    Action,
    DeleteNodeRecord,
    DrainNode,
    PowerDownNode,
    ResumeNode,
    SetNodeComment,
    SetNodeFeatures,
    SetNodeTopology,
    UndrainNode,
)
from penstock.decide.drain.recheck import is_still_valid
from penstock.decide.drain.request import reason_to_send
from penstock.decide.observed.node_comment import with_check_of
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.model.worker_marks import WorkerMarks
from penstock.model.worker_set import WorkerSet
from penstock.slurm.known import Known
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import BusyError, SlurmError
from penstock.slurm.rest.errors import NotFoundError as NoSuchNodeError

NodeAction = DrainNode | UndrainNode | ResumeNode | PowerDownNode

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class SlurmActor:
    """Writes node records: states, comments, features, places, and their end."""

    def __init__(self, rejections: Rejections) -> None:
        self._rejections = rejections

    async def update_nodes(
        self,
        source: WorkerSource,
        connection: SlurmConnection,
        client: Slurmrestd,
        actions: Sequence[Action],
        batch: EventBatch,
    ) -> list[bool]:
        """Change nodes as planned; for each whether it was done.

        Nothing is changed for an object whose spec changes while a slow Slurm answers.
        """
        workers = source.workers
        changes = [one for one in actions if isinstance(one, NodeAction)]
        comments, places = of_kind(actions, SetNodeComment), of_kind(actions, SetNodeTopology)
        features = of_kind(actions, SetNodeFeatures)
        done: list[bool] = []
        if not changes and not comments and not places and not features:
            return done
        if changes:
            async with connection.states:
                connection.mirror.poll_soon()
                snapshot = await connection.mirror.poll()
                if source.has_newer():
                    return [False]
                now = SlurmSnapshot.of(snapshot.nodes, snapshot.jobs)
                done += await gather(
                    self._change(workers.marks, client, one, now, batch) for one in changes
                )
        done += await gather(self._place(client, workers, one, batch) for one in places)
        if comments:
            done += await self._write_comments(workers, connection, client, comments, batch)
        done += await gather(give_features(client, one, batch) for one in features)
        # The next plan must read the state of Slurm after these changes.
        await connection.mirror.poll()
        return done

    async def _change(
        self,
        marks: WorkerMarks,
        client: Slurmrestd,
        action: NodeAction,
        now: SlurmSnapshot,
        batch: EventBatch,
    ) -> bool:
        node = now.node(action.node)
        if node is None or not is_still_valid(marks, action, now):
            return False
        try:
            match action:
                case DrainNode():
                    reason = reason_to_send(marks, node, action)
                    await client.update_node(action.node, state=["DRAIN"], reason=reason)
                case UndrainNode():
                    await client.update_node(action.node, state=["UNDRAIN"])
                case ResumeNode():
                    await client.update_node(action.node, state=["RESUME"])
                case PowerDownNode():
                    asap = ["POWER_DOWN", "POWER_DRAIN"]
                    await client.update_node(action.node, state=asap)
        except SlurmError as error:
            batch.warning(
                Event.SLURM_REFUSED, f"Node {action.node}: {error}", type(action).__name__
            )
            return False
        batch.normal(action.why.reason, action.why.message, type(action).__name__)
        return True

    async def _write_comments(
        self,
        workers: WorkerSet,
        connection: SlurmConnection,
        client: Slurmrestd,
        actions: Sequence[SetNodeComment],
        batch: EventBatch,
    ) -> list[bool]:
        """Write comments with the words that checks have there now, which the plan may lack."""
        if not connection.shares_comments:
            return await gather(self._comment(workers, client, one, batch) for one in actions)
        async with connection.comments:
            nodes = (await connection.mirror.poll()).nodes
            if not isinstance(nodes, Known):
                return [False]
            current = [
                replace(one, comment=with_check_of(one.comment, nodes.value[one.node].comment))
                for one in actions
                if one.node in nodes.value
            ]
            return await gather(self._comment(workers, client, one, batch) for one in current)

    async def _comment(
        self, workers: WorkerSet, client: Slurmrestd, action: SetNodeComment, batch: EventBatch
    ) -> bool:
        # What somebody gave the node a moment ago would be lost.
        if action.features is not None and await self._features(client, action.node) != action.over:
            return False
        if action.gres is not None and not await self._gres(workers, client, action, batch):
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
                batch.warning(Event.SLURM_REFUSED, f"Node {action.node}: {error}", "UpdateNode")
            return False
        if action.why is not None:
            batch.normal(action.why.reason, action.why.message, "UpdateNode")
        return True

    async def _features(self, client: Slurmrestd, name: str) -> tuple[str, ...] | None:
        try:
            return (await client.node(name)).features
        except SlurmError:
            return None

    async def _gres(
        self, workers: WorkerSet, client: Slurmrestd, action: SetNodeComment, batch: EventBatch
    ) -> bool:
        wanted = action.gres or ""
        try:
            return await change_gres(workers.marks, client, action.node, wanted)
        except SlurmError as error:
            if error.is_rejection:
                self._rejections.gres_rejected(workers, wanted)
                note = f"Node {action.node} keeps its GRES until it has another pod: {error}"
                batch.warning(Event.SLURM_REFUSED, note, "UpdateNode")
            return False

    async def _place(
        self, client: Slurmrestd, workers: WorkerSet, action: SetNodeTopology, batch: EventBatch
    ) -> bool:
        """A rejection is reported by a condition of the object while it lasts."""
        try:
            await client.update_node(action.node, topology=action.topology)
        except SlurmError as error:
            if error.is_rejection:
                self._rejections.rejected(workers, action.node, action.topology, str(error))
            return False
        self._rejections.accepted(workers, action.node)
        batch.normal(action.why.reason, action.why.message, "UpdateNode")
        return True

    async def delete_records(
        self,
        source: WorkerSource,
        connection: SlurmConnection,
        client: Slurmrestd,
        records: Sequence[DeleteNodeRecord],
        batch: EventBatch,
    ) -> list[bool]:
        """Delete records of nodes that no pod stands for any more."""
        if not records:
            return []
        workers = source.workers
        connection.mirror.poll_soon()
        snapshot = await connection.mirror.poll()
        now = SlurmSnapshot.of(snapshot.nodes, snapshot.jobs)
        try:
            # slurmctld would take the node out of the reservation with its record. With its
            # object a node is gone for good.
            gone = workers.metadata.deleting
            kept = (
                frozenset[str]()
                if gone
                else await reserved_by_others(client, workers.names.reservation)
            )
        except SlurmError as error:
            log.info("node records kept", error=str(error))
            return [False]
        right = [
            one
            for one in records
            if one.node not in kept and is_still_valid(workers.marks, one, now)
        ]
        deleted = await gather(self._forget_one(client, one, batch) for one in right)
        left = [one.node for one, done in zip(right, deleted, strict=True) if done]
        connection.mirror.forget(left)
        await connection.mirror.poll()
        return [len(left) == len(records)]

    async def _forget_one(
        self, client: Slurmrestd, one: DeleteNodeRecord, batch: EventBatch
    ) -> bool:
        """Whether the record is gone."""
        try:
            await client.delete_node(one.node)
        except NoSuchNodeError:
            pass
        except BusyError:
            return False
        except SlurmError as error:
            note = f"Record of node {one.node} stays: {error}"
            batch.warning(Event.SLURM_REFUSED, note, "DeleteNodeRecord")
            return False
        batch.normal(one.why.reason, one.why.message, "DeleteNodeRecord")
        return True
