"""Goes back to a recorded template when an annotation of a NodeSet asks for it."""

from __future__ import annotations

import msgspec

from penstock.api.cluster.marks import ROLLBACK
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.decide.rollout.rollback import Rollback, requested, rollback
from penstock.kube import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from penstock.model.worker_set import WorkerSet
from penstock.render.slinky.nodeset import revision_meaning as meaning
from penstock.translate.slinky.recorded_spec import patch

ROLLED_BACK = "RolledBack"


class Rollbacks:
    """Does what is asked for once, and says what came of it."""

    def __init__(self, tools: Context, events: Events) -> None:
        self._client = tools.client
        self._world = tools.world
        self._events = events
        self._done: dict[str, tuple[str, str, Finding]] = {}
        """By key of a NodeSet its uid, the last value and what came of it."""

    async def look(self, nodeset: NodeSet, workers: WorkerSet) -> bool:
        """Whether something was asked for, so that the NodeSet is another one now.

        Raises KubeError.
        """
        value = requested(workers)
        if value is None:
            return False
        every = self._world.revisions_of.get(nodeset.metadata.uid)
        records = [meaning.recorded_revision(nodeset, one) for one in every]
        back = rollback(workers, value, meaning.declared_revision(nodeset), records)
        if not back.why:
            try:
                await self._write(nodeset, back)
            except (ConflictError, NotFoundError):
                return True
            except (BadRequestError, InvalidError, ForbiddenError) as error:
                back = Rollback(value, back.number, back.name, why=f"it was refused: {error}")
        if back.why:
            try:
                await self._write(nodeset, Rollback(value))
            except (ConflictError, NotFoundError):
                return True
        self._tell(nodeset, back)
        return True

    def findings(self, nodeset: NodeSet) -> list[Finding]:
        """What came of it, for the status; what a former process did stands there."""
        meta = nodeset.metadata
        uid, value, finding = self._done.get(meta.key, ("", "", None))
        if (
            finding is None
            or uid != meta.uid
            or value != meta.annotations.get(ROLLBACK, "").strip()
        ):
            return []
        return [finding]

    def forget(self, key: str) -> None:
        """That NodeSet is gone."""
        self._done.pop(key, None)

    async def _write(self, nodeset: NodeSet, back: Rollback) -> None:
        meta = nodeset.metadata
        live: Json = msgspec.json.decode(
            await self._client.get_raw(NODESETS, meta.namespace, meta.name)
        )
        steps = patch(nodeset, live["spec"], back.value, back.spec)
        await self._client.patch(NODESETS, meta.namespace, meta.name, steps, kind="json")

    def _tell(self, nodeset: NodeSet, back: Rollback) -> None:
        asks = f"as {ROLLBACK} asks ({back.value})"
        if back.why:
            note = f"Not rolled back, {asks}: {back.why}"
            self._events.warning(nodeset, "RollbackImpossible", note, "Rollback")
            finding = Finding(True, "Impossible", note, type=ROLLED_BACK, inverted=True)
        else:
            which = f"revision {back.number} ({back.name})"
            note = f"The template of {which} is declared again, {asks}"
            self._events.normal(nodeset, "RolledBack", note, "Rollback")
            finding = Finding(True, "Done", note, type=ROLLED_BACK)
        meta = nodeset.metadata
        self._done[meta.key] = meta.uid, back.value, finding
