"""The keys of a SlurmCluster: each Secret is created once, and one that exists is used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.report import Events
from penstock.decide.auth.key_length import munge_key_problem, slurm_key_problem
from penstock.render.nebius.cluster import secrets as render
from penstock.render.parts import ssh_host_keys
from penstock.render.parts.key_secret import generate


class ClusterSecrets:
    """Those of all SlurmClusters."""

    def __init__(self, context: NebiusContext) -> None:
        self._caches = context.caches
        self._objects = context.objects
        self._secrets = context.secrets

    def missing(self, cluster: SlurmCluster) -> list[str]:
        """Names of those that the user is to create and that do not exist."""
        absent = self._absent(cluster)
        return [name for name, manifest in absent if manifest is None]

    def unusable(self, cluster: SlurmCluster) -> Finding | None:
        """The condition of a key by which no daemon could sign its messages."""
        ref, space = names.auth_key(cluster), cluster.metadata.namespace
        if self._caches.secrets.get(f"{space}/{ref.name}") is None:
            return None
        size = len(self._secrets.value(space, ref) or b"")
        problem = munge_key_problem if cluster.spec.has_munge else slurm_key_problem
        return problem("", ref, size)

    async def apply(self, cluster: SlurmCluster, events: Events) -> None:
        """Create absent ones. Raises KubeError."""
        for _, manifest in self._absent(cluster):
            if manifest is not None:
                # Keys of ssh take a second of CPU, and the event loop is that of all clusters.
                made = await asyncio.to_thread(manifest)
                await self._objects.create_secret(cluster, events, made)

    def _absent(self, cluster: SlurmCluster) -> list[tuple[str, Callable[[], Json] | None]]:
        space, cache = cluster.metadata.namespace, self._caches.secrets
        return [one for one in self._wanted(cluster) if cache.get(f"{space}/{one[0]}") is None]

    def _wanted(self, cluster: SlurmCluster) -> Iterator[tuple[str, Callable[[], Json] | None]]:
        """Each Secret, and how it is made unless it is the user's."""
        name = cluster.metadata.name
        if cluster.spec.has_munge:
            yield names.munge_secret(name), lambda: render.munge_secret(cluster, render.munge_key())
        else:
            secret = names.slurm_key_secret(name)
            yield secret, lambda: render.slurm_key_secret(cluster, generate())
        yield names.jwt_secret(name), lambda: render.jwt_secret(cluster, render.jwt_key())
        given = cluster.spec.secrets.sshd_keys_name
        yield (
            names.sshd_keys_secret(cluster),
            None if given else lambda: render.ssh_host_keys(cluster, ssh_host_keys.generate()),
        )
