"""Builds what a process runs for `slurm.nebius.ai`, with the state that reconcilers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from penstock.api.kubernetes.kinds import (
    CRON_JOBS,
    DAEMON_SETS,
    JOBS,
    POD_MONITORS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
)
from penstock.api.nebius.active_check import ACTIVE_CHECKS
from penstock.api.nebius.jailed_config import JAILED_CONFIGS
from penstock.api.nebius.mariadb_objects import GRANTS, MARIADBS
from penstock.controllers.admission.protected_secrets import WRITE_PATH, ProtectedSecrets
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.partition_drift import ClusterDrift
from penstock.controllers.nebius.partition_source import ClusterPartitions
from penstock.controllers.observed.nebius_caches import NebiusCaches
from penstock.controllers.observed.nebius_endpoints import ClusterEndpoints
from penstock.controllers.partition.changes import PartitionChanges
from penstock.controllers.partition.drift import PartitionDrift
from penstock.controllers.partition.state import State
from penstock.controllers.runtime.connectivity import PortProbe
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.controllers.runtime.served_api import ApiControllers, ApiParts
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.kube.runtime.declaration import Declaration
from penstock.kube.runtime.state import StateByUid
from penstock.render.nebius.inputs import Images

New: TypeAlias = Callable[[NebiusContext], Declaration]


@dataclass(frozen=True, kw_only=True)
class NebiusControllers(ApiControllers):
    """What a process runs for SlurmClusters, and what others read of them."""

    clusters: NebiusClusters


def build(parts: ApiParts, reconcilers: Iterable[New]) -> NebiusControllers:
    """The reconcilers of SlurmClusters and of the kinds beside them."""
    client, settings = parts.client, parts.settings
    caches = NebiusCaches(parts.store)
    secrets = SecretReader(caches.secrets)
    images = Images(settings.operator_image, settings.images.slurmrestd, settings.images.backup)
    connections = SlurmConnections(
        ClusterEndpoints(caches, secrets, parts.url_of),
        parts.signals,
        client.clock,
        parts.exchange,
        parts.may_write,
        shares_comments=True,
    )
    more = (
        (JOBS, caches.jobs),
        (CRON_JOBS, caches.cron_jobs),
        (DAEMON_SETS, caches.daemon_sets),
        (POD_MONITORS, caches.pod_monitors),
        (SERVICE_ACCOUNTS, caches.service_accounts),
        (ROLES, caches.roles),
        (ROLE_BINDINGS, caches.role_bindings),
        (JAILED_CONFIGS, caches.jailed_configs),
        (MARIADBS, caches.mariadbs),
        (GRANTS, caches.grants),
        (ACTIVE_CHECKS, caches.active_checks),
    )
    clusters = NebiusClusters(caches, images, settings.cluster_domain)
    changes = PartitionChanges(
        ClusterPartitions(clusters),
        StateByUid(caches.clusters, State),
        connections,
        client.clock,
        parts.signals,
    )
    context = NebiusContext(
        client,
        settings,
        caches,
        secrets,
        ObjectStore(client, caches, more),
        PortProbe(client.clock, parts.connect),
        parts.recorder,
        parts.signals,
        clusters,
        connections,
        changes,
        PartitionDrift(
            client,
            ClusterDrift(clusters),
            caches.clusters,
            connections,
            changes,
            parts.signals,
            parts.recorder,
        ),
    )
    made = tuple(new(context) for new in reconcilers)
    handlers = {}
    if settings.webhooks.port:
        rules = ProtectedSecrets(parts.store.of, settings.namespaces)
        handlers = {WRITE_PATH: rules.validate}
    return NebiusControllers(
        reconcilers=made, beside=(connections.run,), handlers=handlers, clusters=clusters
    )
