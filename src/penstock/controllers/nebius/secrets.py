"""The keys of a SlurmCluster: each Secret is created once, and one that exists is used.

One that is deleted while slurmctld works is created again with the same content: daemons have read
their keys, and a new pod with another one would be locked out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Secret
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.report import Events
from penstock.decide.auth.key_length import munge_key_problem, slurm_key_problem
from penstock.decide.auth.key_owner import SLURM_CLUSTER, foreign_key
from penstock.render.nebius.cluster import secrets as render
from penstock.render.parts import ssh_host_keys
from penstock.render.parts.key_secret import generate

_ADVICE = "Delete this SlurmCluster, and create it with another name"


@dataclass(slots=True)
class _State:
    former: dict[str, Secret] = field(default_factory=dict[str, Secret])
    """By name the last version of a Secret by whose content daemons work."""


class ClusterSecrets:
    """Those of all SlurmClusters."""

    def __init__(self, context: NebiusContext) -> None:
        self._caches = context.caches
        self._clusters = context.clusters
        self._states = context.states(SLURM_CLUSTERS, _State)
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

    def foreign(self, cluster: SlurmCluster) -> Finding | None:
        """The condition of a key that another cluster has under the same name."""
        space = cluster.metadata.namespace
        generated = [name for name, manifest in self._wanted(cluster) if manifest is not None]
        for name in (*generated, names.key_ring(cluster.metadata.name)):
            secret = self._caches.secrets.get(f"{space}/{name}")
            if secret is None:
                continue
            if found := _foreign(cluster, secret):
                return found
        return None

    async def apply(self, cluster: SlurmCluster, events: Events) -> None:
        """Create absent ones. Raises KubeError."""
        known = self._states.of(cluster).former
        works = self._clusters.served(cluster)
        if works:
            self._remember(cluster, known)
        for name, manifest in self._absent(cluster):
            if manifest is None:
                continue
            # Keys of ssh take a second of CPU, and the event loop is that of all clusters.
            made = await asyncio.to_thread(manifest)
            if works and name in known:
                former = _restored(cluster, known[name], made)
                await self._objects.restore_secret(cluster, events, former)
            else:
                await self._objects.create_secret(cluster, events, made)

    def _remember(self, cluster: SlurmCluster, known: dict[str, Secret]) -> None:
        space = cluster.metadata.namespace
        for name, _ in self._wanted(cluster):
            secret = self._caches.secrets.get(f"{space}/{name}")
            # One of a deleted cluster goes, and slurmctld may still be that cluster's.
            if (
                secret is not None
                and secret.data
                and _foreign(cluster, secret) is None
                and self._is_usable(cluster, secret)
            ):
                known[name] = secret

    def _is_usable(self, cluster: SlurmCluster, secret: Secret) -> bool:
        """Whether a daemon can start with the content of a Secret that is not empty."""
        meta, values = secret.metadata, (secret.data or {}).values()
        if meta.name == names.auth_key(cluster).name:
            return self.unusable(cluster) is None
        if meta.name == names.jwt_secret(cluster.metadata.name):
            ref = SecretKeySelector(name=meta.name, key=names.JWT_KEY)
            return bool(self._secrets.value(meta.namespace, ref))
        return all(values)

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


def _foreign(cluster: SlurmCluster, secret: Secret) -> Finding | None:
    return foreign_key(secret.metadata, SLURM_CLUSTER, cluster.metadata, _ADVICE)


def _restored(cluster: SlurmCluster, former: Secret, made: Json) -> Json:
    """A Secret as it was. That of a user or of another program does not become the cluster's.

    Else it would be deleted with the cluster, and a program such as one for external Secrets would
    find another owner.
    """
    of, meta = cluster.metadata, former.metadata
    is_own = any(one.uid == of.uid for one in meta.owner_references)
    metadata: Json = made["metadata"] if is_own else {"name": meta.name, "namespace": of.namespace}
    return {**made, "metadata": metadata, "data": dict(former.data or {})}
