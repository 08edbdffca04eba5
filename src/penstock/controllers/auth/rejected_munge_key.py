"""Reads logs of workers that are not registered: their munge key may differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.controllers.auth.worker_log import AGAIN_S, WorkerLog
from penstock.controllers.runtime.reconciler import Context
from penstock.decide.auth import rejected_munge_key
from penstock.kube import NotFoundError
from penstock.slurm.known import Fact
from penstock.slurm.state import Node


class RejectedMungeKeyDetector:
    """Finds workers whose munge key differs from slurmctld's."""

    def __init__(self, context: Context, resource: Resource[Any]) -> None:
        self._client = context.client
        self._log = WorkerLog(context, resource, rejected_munge_key.find_rejection)

    async def findings(
        self,
        obj: KubeObject,
        pods: Sequence[Pod],
        nodes: Fact[Mapping[str, Node]],
        wanted: SecretKeySelector,
    ) -> list[Finding]:
        """Return the condition; `wanted` is the source of slurmctld's key. Raises KubeError."""
        unregistered = rejected_munge_key.unregistered(pods, nodes)
        late = rejected_munge_key.late(unregistered, self._client.clock.time())
        rejected = await self._log.observe(obj, late[0] if late else None)
        if rejected is None:
            return []
        meta = late[0].metadata
        try:
            raw = await self._client.get_raw(PODS, meta.namespace, meta.name)
        except NotFoundError:
            return []
        own = rejected_munge_key.source_of(msgspec.json.decode(raw))
        return [rejected_munge_key.finding(rejected, own, wanted)]

    def requeue_after(
        self, obj: KubeObject, pods: Sequence[Pod], nodes: Fact[Mapping[str, Node]]
    ) -> float | None:
        """Seconds until a log is to be read; None while all workers are registered."""
        if self._log.is_read(obj) or rejected_munge_key.unregistered(pods, nodes):
            return AGAIN_S
        return None
