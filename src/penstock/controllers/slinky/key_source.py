"""The keys of auth/slurm of Controllers: slurm.jwks is among the files of slurmctld's pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.api.cluster import labels as app_labels
from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.controllers.auth.key_source import slurmd_starts, unable
from penstock.controllers.observed.references import sharing_key
from penstock.controllers.runtime.slinky_context import SlinkyContext
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.decide.auth.key_rotation import RotationView
from penstock.render.slinky.config.config_maps import config_hash
from penstock.slurm.auth.key_rotation import Phase, Ring


class ControllerKeys:
    """Those of all Controllers. New pods of logins and slurmdbd show which key they began with."""

    def __init__(self, context: SlinkyContext, connections: SlurmConnections) -> None:
        self._clock = context.client.clock
        self._caches = context.caches
        self._clusters = context.clusters
        self._secrets = context.secrets
        self._connections = connections

    def key(self, obj: Controller) -> SecretKeySelector | None:
        """The source of slurm.key; None with munge."""
        return names.slurm_key_ref(obj) if obj.spec.munge_key_ref is None else None

    def ring_name(self, obj: Controller) -> str:
        """The name of the Secret with the key ring."""
        return names.key_ring(obj)

    def labels(self, obj: Controller) -> Mapping[str, str]:
        """Those of slurmctld."""
        return app_labels.labels("slurmctld", obj.metadata.name)

    def first_ring(self, obj: Controller, key: bytes) -> Ring:
        """Without files, so that Slurm reads slurm.key as before."""
        origin = self._secrets.hash(obj.metadata.namespace, names.slurm_key_ref(obj))
        return Ring(key, origin, origin)

    async def view(self, obj: Controller, ring: Ring, key: bytes) -> RotationView:
        """Pods, Slurm nodes, and the configuration that slurmctld runs with."""
        cluster, workers = self._clusters.declared(obj), list(self._workers(obj))
        return RotationView(
            self._clock.time(),
            key,
            applied=obj.status.effective_config_hash == config_hash(cluster),
            unable=unable([*self._clusters.slurmctld_pods(obj), *workers], marks.KEY_RING),
            starts=slurmd_starts(workers, obj.metadata.key, self._connections),
            waiting=self._waiting(obj, ring),
        )

    def marked(self, obj: Controller, ring: Ring) -> Iterable[tuple[Pod, int]]:
        """The workers; slurmctld's pod gets an annotation with its configuration."""
        return () if ring.phase is Phase.CLIENTS else ((pod, 0) for pod in self._workers(obj))

    def _workers(self, obj: Controller) -> Iterable[Pod]:
        for nodeset in self._caches.nodesets_of.get(obj.metadata.key):
            yield from self._caches.workers_of(nodeset)

    def _waiting(self, obj: Controller, ring: Ring) -> list[str]:
        if ring.phase is not Phase.CLIENTS:
            return []
        space, key = obj.metadata.namespace, obj.metadata.key
        workloads = [("login", one.metadata.name) for one in self._caches.loginsets_of.get(key)]
        accounting = self._clusters.declared(obj).accounting
        if accounting is not None and obj in sharing_key(accounting, self._caches.store):
            workloads.append(("slurmdbd", accounting.metadata.name))
        return [
            pod.metadata.name
            for component, instance in workloads
            for pod in self._caches.pods_labelled(space, component, instance)
            if not pod.metadata.deleting
            if pod.metadata.annotations.get(slinky_labels.SLURM_KEY_HASH) != ring.clients
            or not pod.ready
        ]
