"""The keys of auth/slurm of SlurmClusters: slurm.jwks is beside the configuration, in no jail.

From the beginning daemons read the key ring and not slurm.key. So a pod that starts right after
slurm.key was changed, maybe to one that Slurm rejects, has the same keys as the others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius import labels, names
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.controllers.auth.key_source import slurmd_starts, unable
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.concurrency import gather
from penstock.decide.auth.key_report import digest, reported
from penstock.decide.auth.key_rotation import RotationView
from penstock.kube import KubeError
from penstock.render.nebius import accounting
from penstock.slurm.auth.key_rotation import SHORTEST, Phase, Ring

LINES: Final = 500
"""Lines of a log to read: that of a login also has what sshd logs, and a report each minute."""
READ_S: Final = 1.0
"""Seconds between two reads of the logs of pods that lack the keys."""
AGAIN_S: Final = 5.0
"""Seconds between two tries to have a kubelet refresh the file."""
_MOST_TRIES: Final = 12
_SLURMCTLD, _LOGIN = "reconfigure", "sshd"
"""Containers whose logs have reports of keys."""


@dataclass(slots=True)
class _State:
    read_at: float = 0.0
    has: dict[str, str] = field(default_factory=dict[str, str])
    """By uid of a pod the digest of the keys that its log has shown last."""


class ClusterKeys:
    """Those of all SlurmClusters. Logs show which keys slurmctld and the logins have read."""

    def __init__(self, context: NebiusContext) -> None:
        self._client = context.client
        self._clusters = context.clusters
        self._secrets = context.secrets
        self._connections = context.connections
        self._states = context.states(SLURM_CLUSTERS, _State)

    def key(self, obj: SlurmCluster) -> SecretKeySelector | None:
        """The source of slurm.key; None with munge."""
        return None if obj.spec.has_munge else names.auth_key(obj)

    def ring_name(self, obj: SlurmCluster) -> str:
        """The name of the Secret with the key ring."""
        return names.key_ring(obj.metadata.name)

    def labels(self, obj: SlurmCluster) -> Mapping[str, str]:
        """Those of the other keys."""
        return labels.object_labels("common", obj.metadata.name)

    def first_ring(self, obj: SlurmCluster, key: bytes) -> Ring:
        """With files, unless Slurm takes the key in slurm.key alone."""
        origin = self._secrets.hash(obj.metadata.namespace, names.auth_key(obj))
        return Ring(key, origin, origin, used=len(key) >= SHORTEST)

    def clients_key(self, obj: SlurmCluster) -> str:
        """Names the key with which slurmdbd is to begin; empty with munge."""
        if obj.spec.has_munge:
            return ""
        ring = self._secrets.ring(f"{obj.metadata.namespace}/{self.ring_name(obj)}")
        if ring is not None:
            return ring.clients
        return self._secrets.hash(obj.metadata.namespace, names.auth_key(obj))

    async def view(self, obj: SlurmCluster, ring: Ring, key: bytes) -> RotationView:
        """Pods, Slurm nodes, and the keys that logs of slurmctld and logins show."""
        slurmctld, logins = self._clusters.slurmctld_pods(obj), self._clusters.pods(obj, "login")
        workers = self._clusters.worker_pods(obj)
        await self._read(obj, self._awaited(obj, ring), ring)
        late = [pod.metadata.name for pod in self._late(obj, ring)]
        if ring.phase is Phase.CLIENTS:
            late += self._former_slurmdbd(obj, ring)
        is_there = any(not pod.metadata.deleting for pod in slurmctld)
        return RotationView(
            self._client.clock.time(),
            key,
            applied=not late and (is_there or self._clusters.is_resting(obj)),
            unable=unable((*slurmctld, *workers, *logins), marks.KEY_RING),
            starts=slurmd_starts(workers, obj.metadata.key, self._connections),
            waiting=late,
        )

    def marked(self, obj: SlurmCluster, ring: Ring) -> Iterable[tuple[Pod, int]]:
        """Workers as long as they alone have a step's file; then who is waited for."""
        if ring.phase is not Phase.CLIENTS and not ring.handed:
            return ((pod, 0) for pod in self._clusters.worker_pods(obj))
        waited = (self._client.clock.time() - ring.since) / AGAIN_S
        number = max(0, min(int(waited), _MOST_TRIES))
        return ((pod, number) for pod in self._late(obj, ring))

    def _awaited(self, obj: SlurmCluster, ring: Ring) -> list[Pod]:
        """Pods whose log is to show the keys of a step: logins or slurmctld's.

        One whose container does not run yet reads the present keys when it starts.
        """
        if ring.phase is Phase.CLIENTS:
            return [pod for pod in self._clusters.pods(obj, "login") if _runs(pod, _LOGIN)]
        if not ring.handed:
            return []
        return [pod for pod in self._clusters.slurmctld_pods(obj) if not pod.metadata.deleting]

    def _late(self, obj: SlurmCluster, ring: Ring) -> list[Pod]:
        """Those whose log has not shown the keys of a step."""
        has, wanted = self._states.of(obj).has, _digest(ring)
        return [pod for pod in self._awaited(obj, ring) if has.get(pod.metadata.uid) != wanted]

    def _former_slurmdbd(self, obj: SlurmCluster, ring: Ring) -> list[str]:
        return [
            pod.metadata.name
            for pod in self._clusters.pods(obj, accounting.COMPONENT)
            if not pod.metadata.deleting
            if pod.metadata.annotations.get(marks.SLURM_KEY_HASH) != ring.clients or not pod.ready
        ]

    async def _read(self, obj: SlurmCluster, awaited: list[Pod], ring: Ring) -> None:
        """Read the logs of pods that have not shown the keys of a step."""
        state, now = self._states.of(obj), self._client.clock.monotonic()
        uids = {pod.metadata.uid for pod in awaited}
        state.has = {uid: one for uid, one in state.has.items() if uid in uids}
        late = self._late(obj, ring)
        if not late or now - state.read_at < READ_S / 2:
            return
        state.read_at = now
        container = _LOGIN if ring.phase is Phase.CLIENTS else _SLURMCTLD

        async def read(pod: Pod) -> None:
            meta = pod.metadata
            # A log that cannot be read shows no keys.
            with contextlib.suppress(KubeError):
                log = await self._client.log(meta.namespace, meta.name, container, LINES)
                state.has[meta.uid] = reported(log)

        await gather(read(pod) for pod in late)


def _digest(ring: Ring) -> str:
    text = ring.login if ring.phase is Phase.CLIENTS else ring.slurmctld
    return digest(text or "")


def _runs(pod: Pod, container: str) -> bool:
    every = pod.status.container_statuses or ()
    runs = any(one.name == container and one.state.running is not None for one in every)
    return runs and not pod.metadata.deleting
