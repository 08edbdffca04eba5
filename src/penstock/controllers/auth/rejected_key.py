"""Reads logs of workers that do not register: slurmctld may reject their key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.controllers.auth.worker_log import AGAIN_S, WorkerLog
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.slinky_context import SlinkyContext
from penstock.decide.auth import rejected_key, rejected_munge_key
from penstock.decide.auth.rejected_key import KeyRejection
from penstock.decide.observed.pod import SLURMD
from penstock.decide.slurm_node import slurmd_version
from penstock.kube import KubeError
from penstock.render.slinky.cluster import release
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.auth.key_files import SLURM_JWKS, SLURM_KEY

SLURMCTLD_LINES = 200
"""Lines of slurmctld's log to read: it has a few each time that a slurmd is rejected."""


class RejectedKeyDetector:
    """Finds workers whose slurm.key slurmctld rejects; keeps the last log read of each object."""

    def __init__(self, context: SlinkyContext, resource: Resource[Any]) -> None:
        self._client = context.client
        self._clusters = context.clusters
        self._secrets = context.secrets
        self._restarter = PodRestarter(context.client)
        self._log = WorkerLog(context, resource, rejected_key.find_rejection)

    async def observe(self, obj: KubeObject, pod: Pod | None) -> KeyRejection | None:
        """Return how slurmctld rejected the key of a worker, from slurmd's log."""
        return await self._log.observe(obj, pod)

    async def refresh(self, pods: Sequence[Pod], key_hash: str) -> None:
        """Have the kubelet refresh a corrected key at once, instead of after a minute."""
        for pod in pods:
            if rejected_key.starting([pod]) is not None:
                await self._restarter.annotate(pod, key_hash, slinky_labels.SLURM_KEY_HASH)

    async def findings(
        self, obj: KubeObject, cluster: ClusterInputs, pods: Sequence[Pod]
    ) -> list[Finding]:
        """Return the condition of workers whose slurmctld runs in a pod. Raises KubeError."""
        waiting = rejected_key.late(pods, self._client.clock.time())
        rejected = await self.observe(obj, waiting[0] if waiting else None)
        if rejected is None:
            return []
        meta = waiting[0].metadata
        raw = await self._client.get_raw(PODS, meta.namespace, meta.name)
        if slurmd_version.is_release_rejected(waiting[0], await self._log_of_slurmctld(cluster)):
            # slurmd logs the same error for a release that slurmctld rejects.
            image = release.images(msgspec.json.decode(raw)["spec"]).get(SLURMD, "")
            return [
                slurmd_version.release_finding(
                    meta.name, release.running(cluster), {"image": image}
                )
            ]
        wanted = names.slurm_key_ref(cluster.controller)
        if cluster.munge_key is not None:
            own = rejected_munge_key.source_of(msgspec.json.decode(raw))
            if own is not None and (found := self._secrets.hash(meta.namespace, own)):
                await self.refresh(waiting, found)
            return [rejected_key.finding(rejected, own, wanted, "munge key")]
        own = _from(msgspec.json.decode(raw), SLURM_JWKS, SLURM_KEY)
        if own is not None and own.name == names.key_ring(cluster.controller):
            # The key ring has the key of the Secret that the user named.
            own = wanted
        if own is not None and (found := self._secrets.hash(meta.namespace, own)):
            await self.refresh(waiting, found)
        return [rejected_key.finding(rejected, own, wanted)]

    async def _log_of_slurmctld(self, cluster: ClusterInputs) -> str:
        """Return the last lines of slurmctld's log; empty while it cannot be read."""
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
        if self._log.is_read(obj):
            return AGAIN_S
        return rejected_key.late_in(pods, self._client.clock.time())


def _from(pod: Json, *files: str) -> SecretKeySelector | None:
    """Return the source of the first of these files that a worker has."""
    return next(filter(None, (rejected_key.source(pod, file) for file in files)), None)
