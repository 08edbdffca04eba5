"""Which slurmrestd each SlurmCluster's Slurm has: the one that is always in it."""

from __future__ import annotations

from collections.abc import Callable

from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.observed.nebius_caches import NebiusCaches
from penstock.controllers.observed.rest_service import RestServices
from penstock.controllers.observed.slurm_endpoints import (
    SLURM_USER,
    SlurmEndpoint,
    SlurmEndpoints,
    Target,
)
from penstock.render.nebius.cluster.services import rest_port
from penstock.slurm.conf.document import Document
from penstock.slurm.conf.includes import resolved


class ClusterEndpoints(SlurmEndpoints):
    """Those of all SlurmClusters.

    `url_of` is where the slurmrestd of one listens, without it at its Service, which is checked
    (`rest_service`).
    """

    def __init__(
        self,
        caches: NebiusCaches,
        secrets: SecretReader,
        url_of: Callable[[SlurmCluster], str] | None = None,
    ) -> None:
        self._caches = caches
        self._secrets = secrets
        self._url_of = url_of or service_url
        self._services = RestServices(caches.services, SLURM_CLUSTERS) if url_of is None else None

    def uid(self, key: str) -> str:
        """The uid of the SlurmCluster, empty while there is none."""
        cluster = self._caches.clusters.get(key)
        return cluster.metadata.uid if cluster is not None else ""

    def largest_size(self) -> int:
        """The sum over all NodeSets and workers of SlurmClusters."""
        own = (one.spec.slurm_nodes.worker for one in self._caches.clusters)
        return sum(one.size or 0 for one in own if one is not None) + sum(
            max(one.spec.replicas, one.status.replicas) for one in self._caches.node_sets
        )

    def find(self, key: str) -> SlurmEndpoint | None:
        """By the Secret with the key of auth/jwt."""
        cluster = self._caches.clusters.get(key)
        if cluster is None:
            return None
        meta = cluster.metadata
        ref = SecretKeySelector(name=names.jwt_secret(meta.name), key=names.JWT_KEY)
        secret = self._secrets.value(meta.namespace, ref)
        if secret is None:
            why = f"Secret {ref.name} has no usable key {ref.key} to sign tokens with"
            return SlurmEndpoint(meta.uid, why)
        url = self._url_of(cluster)
        if self._services is not None and (why := self._services.distrust(url, meta.uid)):
            return SlurmEndpoint(meta.uid, why)
        user = self._slurm_user(meta.namespace, meta.name)
        return SlurmEndpoint(meta.uid, Target(url, secret, user))

    def _slurm_user(self, namespace: str, name: str) -> str:
        """SlurmUser of the files in force: root in those of the original."""
        found = self._caches.config_map(f"{namespace}/{names.slurm_configs(name)}")
        text = resolved(found.data or {}) if found is not None else ""
        return Document.parse(text).get("SlurmUser") or SLURM_USER


def service_url(cluster: SlurmCluster) -> str:
    """URL of a SlurmCluster's slurmrestd, by its Service's name in the cluster's DNS."""
    meta = cluster.metadata
    name = names.service(meta.name, "rest")
    return f"http://{name}.{meta.namespace}:{rest_port(cluster.spec)}"
