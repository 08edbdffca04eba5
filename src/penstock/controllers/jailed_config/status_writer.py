"""Writes the conditions of JailedConfigs, and emits an event when files cannot be written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from penstock.api.kubernetes.conditions import Finding, find, own_condition, set_conditions
from penstock.api.kubernetes.meta import Condition, Json
from penstock.api.nebius.jailed_config import JAILED_CONFIGS, JailedConfig
from penstock.catalog.runbook import without_address
from penstock.controllers.runtime.status import merge_patch
from penstock.decide.jail.jailed_config import FILES_WRITTEN, REFRESH
from penstock.kube import Client, NotFoundError, Recorder
from penstock.kube.cache.own_writes import OwnWrites


class StatusWriter:
    """Conditions are a journal, so the last write counts before the watch shows it."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder
        self._own = OwnWrites[JailedConfig]()

    def latest(self, obj: JailedConfig) -> JailedConfig:
        """The object as it was seen, with the status of our last write if that is newer."""
        return self._own.latest(obj.metadata.key, obj) or obj

    async def write(self, obj: JailedConfig, findings: Sequence[Finding]) -> JailedConfig:
        """Write conditions that differ; the object with the new status. Raises KubeError."""
        new = [own_condition(one) for one in findings]
        when = datetime.fromtimestamp(self._client.clock.time(), UTC)
        generation = obj.metadata.generation
        conditions = set_conditions(obj.status.conditions, new, generation, when)
        status = msgspec.structs.replace(
            obj.status, observed_generation=generation, conditions=conditions
        )
        patch = merge_patch(msgspec.to_builtins(obj.status), msgspec.to_builtins(status))
        if conditions == obj.status.conditions:
            return obj
        self._warn(obj, conditions)
        # The uid keeps the status of a deleted object off another one of the same name.
        body: Json = {"metadata": {"uid": obj.metadata.uid}, "status": patch}
        meta = obj.metadata
        try:
            answer = await self._client.patch(
                JAILED_CONFIGS, meta.namespace, meta.name, body, subresource="status"
            )
        except NotFoundError:
            return obj
        self._own.wrote(answer)
        return msgspec.structs.replace(obj, status=answer.status)

    def _warn(self, obj: JailedConfig, conditions: tuple[Condition, ...]) -> None:
        before = find(obj.status.conditions, FILES_WRITTEN)
        after = find(conditions, FILES_WRITTEN)
        if after is None or after.status != "False" or after.reason == REFRESH.value:
            return
        words = without_address(after.message)
        if (
            before is not None
            and before.status == "False"
            and without_address(before.message) == words
        ):
            return
        self._recorder.event(JAILED_CONFIGS, obj, reason=after.reason, note=words, warning=True)
