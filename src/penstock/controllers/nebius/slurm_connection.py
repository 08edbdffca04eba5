"""Connects to the Slurm of each SlurmCluster, by the Secret with its JWT key."""

from __future__ import annotations

from typing import Any

from penstock.api.kubernetes.kinds import CONFIG_MAPS, SECRETS, SERVICES, ConfigMap, Secret, Service
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.observed.watching import own_key, spec_changed
from penstock.kube import Result
from penstock.kube.runtime.declaration import Lookup, Signal, Watch

_JWT_SUFFIX = names.jwt_secret("")
_REST_SUFFIX = names.service("", "rest")
_CONFIGS_SUFFIX = names.slurm_configs("")


def clusters_signing_with(secret: Secret, _: Lookup) -> list[str]:
    """The SlurmCluster whose JWT key is in a Secret, whether that exists or not."""
    meta = secret.metadata
    if not meta.name.endswith(_JWT_SUFFIX):
        return []
    return [f"{meta.namespace}/{meta.name.removesuffix(_JWT_SUFFIX)}"]


def clusters_configured_by(config_map: ConfigMap, _: Lookup) -> list[str]:
    """The SlurmCluster whose files in force are in a ConfigMap, whether that exists or not."""
    meta = config_map.metadata
    if not meta.name.endswith(_CONFIGS_SUFFIX):
        return []
    return [f"{meta.namespace}/{meta.name.removesuffix(_CONFIGS_SUFFIX)}"]


def clusters_served_by(service: Service, _: Lookup) -> list[str]:
    """The SlurmCluster whose slurmrestd has a Service of this name, whether it exists or not."""
    meta = service.metadata
    if not meta.name.endswith(_REST_SUFFIX):
        return []
    return [f"{meta.namespace}/{meta.name.removesuffix(_REST_SUFFIX)}"]


class SlurmConnectionReconciler:
    """Keeps one connection for each SlurmCluster."""

    name: str = "slurmcluster-connection"
    watches: tuple[Watch[Any], ...] = (
        Watch(SLURM_CLUSTERS, own_key, spec_changed),
        Watch(SECRETS, clusters_signing_with),
        # SlurmUser, whose tokens the operator needs.
        Watch(CONFIG_MAPS, clusters_configured_by),
        # No token goes to one that is not ours.
        Watch(SERVICES, clusters_served_by),
    )
    signals: tuple[Signal, ...] = ()

    def __init__(self, context: NebiusContext) -> None:
        self._connections = context.connections

    async def run(self, key: str, /) -> Result:
        """Follow the slurmrestd and the JWT key of one SlurmCluster."""
        return await self._connections.reconcile(key)
