"""Reads in the logs of workers that do not register whether slurmctld refuses their key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.slinky_context import SlinkyContext
from penstock.decide.auth import rejected_key as refused_key
from penstock.decide.auth.rejected_key import Refusal
from penstock.decide.observed.pod import SLURMD
from penstock.decide.slurm_node import slurmd_version
from penstock.kube import KubeError
from penstock.render.slinky.cluster import release
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.auth.key_files import SLURM_JWKS, SLURM_KEY

AGAIN_S = 10.0
"""Between two looks at what keeps the sides apart."""
LINES = 20
"""Of a slurmd's log: it says every ten seconds what it waits for."""
SLURMCTLD_LINES = 200
"""Of slurmctld's log, which has a few lines each time that a slurmd is rejected."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What the log of a worker said, and when it was read (monotonic seconds)."""

    uid: str
    at: float
    refusal: Refusal | None


@dataclass(slots=True)
class _State:
    read: _Read | None = None


class RejectedKeyDetector:
    """The last log that was read for each object of a resource."""

    def __init__(self, context: SlinkyContext, resource: Resource[Any]) -> None:
        self._client = context.client
        self._clusters = context.clusters
        self._secrets = context.secrets
        self._restarter = PodRestarter(context.client)
        self._states = context.states(resource, _State)

    async def observe(self, obj: KubeObject, pod: Pod | None) -> Refusal | None:
        """How slurmctld rejected the key of a worker that does not register, by slurmd's log."""
        state, now = self._states.of(obj), self._client.clock.monotonic()
        if pod is None:
            state.read = None
            return None
        read = state.read
        if read is None or read.uid != pod.metadata.uid or now - read.at >= AGAIN_S:
            meta = pod.metadata
            try:
                log = await self._client.log(meta.namespace, meta.name, "slurmd", LINES)
            except KubeError:
                log = ""
            read = state.read = _Read(meta.uid, now, refused_key.refusal(pod, log))
        return read.refusal

    async def refresh(self, pods: Sequence[Pod], key_hash: str) -> None:
        """Have the kubelet bring a key that was put right, which else takes it over a minute."""
        for pod in pods:
            if refused_key.starting([pod]) is not None:
                await self._restarter.annotate(pod, key_hash, slinky_labels.SLURM_KEY_HASH)

    async def findings(
        self, obj: KubeObject, cluster: ClusterInputs, pods: Sequence[Pod]
    ) -> list[Finding]:
        """What is told of workers of a slurmctld that is inside. Raises KubeError."""
        waiting = refused_key.late(pods, self._client.clock.time())
        refused = await self.observe(obj, waiting[0] if waiting else None)
        if refused is None:
            return []
        meta = waiting[0].metadata
        raw = await self._client.get_raw(PODS, meta.namespace, meta.name)
        if slurmd_version.is_refused(waiting[0], await self._log_of_slurmctld(cluster)):
            # slurmd cannot tell it from another key.
            image = release.images(msgspec.json.decode(raw)["spec"]).get(SLURMD, "")
            return [slurmd_version.refused(meta.name, release.running(cluster), {"image": image})]
        wanted = names.slurm_key_ref(cluster.controller)
        own = _from(msgspec.json.decode(raw), SLURM_JWKS, SLURM_KEY)
        if own is not None and own.name == names.key_ring(cluster.controller):
            # What is in the ring was made of the Secret that users know.
            own = wanted
        if own is not None and (found := self._secrets.hash(meta.namespace, own)):
            await self.refresh(waiting, found)
        return [refused_key.finding(refused, own, wanted)]

    async def _log_of_slurmctld(self, cluster: ClusterInputs) -> str:
        """The end of it; empty while it cannot be read."""
        pods = self._clusters.slurmctld_pods(cluster.controller)
        if not pods:
            return ""
        meta = pods[0].metadata
        try:
            return await self._client.log(meta.namespace, meta.name, "slurmctld", SLURMCTLD_LINES)
        except KubeError:
            return ""

    def requeue_after(self, obj: KubeObject, pods: Sequence[Pod]) -> float | None:
        """Seconds until a log is to be read; None while no worker starts."""
        if self._states.of(obj).read is not None:
            return AGAIN_S
        return refused_key.late_in(pods, self._client.clock.time())


def _from(pod: Json, *files: str) -> SecretKeySelector | None:
    """Whence a worker has the first of these files that it has."""
    return next(filter(None, (refused_key.source(pod, file) for file in files)), None)
