"""Builds the reconcilers of Slinky's kinds, with the state that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from penstock.controllers.admission.binding import BIND, PodBinding
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.observed.cluster_state import PartitionOverrides, RejectedFiles
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.observed.slinky_endpoints import ControllerEndpoints
from penstock.controllers.partition.changes import PartitionChanges
from penstock.controllers.partition.context import ClusterContext
from penstock.controllers.partition.drift import PartitionDrift
from penstock.controllers.partition.state import State
from penstock.controllers.runtime.connectivity import PortProbe, own_addresses
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.controllers.runtime.served_api import ApiControllers, ApiParts
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.controllers.slinky.partition_drift import ControllerDrift
from penstock.controllers.slinky.partition_source import ControllerPartitions
from penstock.kube.runtime.declaration import Declaration
from penstock.kube.runtime.state import StateByUid

New: TypeAlias = Callable[[ClusterContext], Declaration]


@dataclass(frozen=True, kw_only=True)
class SlinkyControllers(ApiControllers):
    """What a process runs for Slinky's clusters, and what others read of them."""

    clusters: SlinkyClusters
    connections: SlurmConnections


def build(parts: ApiParts, reconcilers: Iterable[New]) -> SlinkyControllers:
    """The reconcilers of Slinky's clusters, with one state."""
    client, settings, signals = parts.client, parts.settings, parts.signals
    caches = SlinkyCaches(parts.store)
    secrets = SecretReader(caches.secrets)
    overrides = StateByUid(caches.controllers, PartitionOverrides)
    rejected_files = StateByUid(caches.controllers, RejectedFiles)
    clusters = SlinkyClusters(
        caches, secrets, settings.images, settings.cluster_domain, overrides, rejected_files
    )
    endpoints = ControllerEndpoints(caches, secrets, parts.url_of)
    connections = SlurmConnections(
        endpoints,
        signals,
        client.clock,
        parts.exchange,
        parts.may_write,
    )
    changes = PartitionChanges(
        ControllerPartitions(clusters, overrides),
        StateByUid(caches.controllers, State),
        connections,
        client.clock,
        signals,
    )
    context = ClusterContext(
        client,
        settings,
        caches,
        secrets,
        ObjectStore(client, caches),
        PortProbe(
            client.clock,
            parts.connect,
            own=own_addresses(),
            services=caches.service_addresses_beside,
        ),
        parts.recorder,
        signals,
        clusters,
        rejected_files,
        connections,
        endpoints,
        changes,
        PartitionDrift(
            client,
            ControllerDrift(clusters),
            caches.controllers,
            connections,
            changes,
            signals,
            parts.recorder,
        ),
    )
    return SlinkyControllers(
        reconcilers=tuple(new(context) for new in reconcilers),
        beside=(connections.run,),
        handlers={BIND: PodBinding(clusters).bind},
        clusters=clusters,
        connections=connections,
    )
