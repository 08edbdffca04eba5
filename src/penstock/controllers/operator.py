"""The whole operator: collects what the reconcilers declare, starts them and stops them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from penstock.api.slinky.restapi import RestApi
from penstock.controllers.admission.webhooks import Webhooks
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.observed.cluster_state import PartitionOverrides, RejectedFiles
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.observed.slinky_endpoints import ControllerEndpoints, service_url
from penstock.controllers.partition.changes import PartitionChanges
from penstock.controllers.partition.context import ClusterContext
from penstock.controllers.partition.drift import PartitionDrift
from penstock.controllers.registry import RECONCILERS, New
from penstock.controllers.runtime.connectivity import Connect, PortProbe, connect
from penstock.controllers.runtime.metrics import ALL
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.controllers.runtime.settings import Settings
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.kube import Client, Controller, Lease, Manager, Recorder, serve
from penstock.kube.client.config import load
from penstock.kube.client.transport import HttpTransport
from penstock.kube.runtime.declaration import Signals, subscribe
from penstock.kube.runtime.state import StateByUid
from penstock.slurm.rest.http import Exchange

REPORTER = "penstock.dev/operator"
LEASE = "slurm-operator"
"""The name that slurm-operator uses: in one namespace the two never act at the same time."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Operator:
    """The reconcilers of one process, each with its queue, and one manager that runs them."""

    def __init__(
        self,
        client: Client,
        manager: Manager,
        recorder: Recorder,
        settings: Settings,
        *,
        url_of: Callable[[RestApi], str] = service_url,
        exchange: Exchange | None = None,
        connect: Connect = connect,
        reconcilers: Sequence[New] = RECONCILERS,
    ) -> None:
        for metric in ALL:
            client.metrics.registry.register(metric)
        caches = SlinkyCaches(CacheStore(manager))
        secrets = SecretReader(caches.secrets)
        overrides = StateByUid(caches.controllers, PartitionOverrides)
        rejected_files = StateByUid(caches.controllers, RejectedFiles)
        self.clusters = clusters = SlinkyClusters(
            caches, secrets, settings.images, settings.cluster_domain, overrides, rejected_files
        )
        self.signals = signals = Signals()
        endpoints = ControllerEndpoints(caches, secrets, url_of)
        self.connections = SlurmConnections(
            endpoints,
            signals,
            client.clock,
            exchange,
            # Called at each write: the guard is set when the manager begins to wait for the Lease.
            lambda: client.guard is None or client.guard(),
        )
        changes = PartitionChanges(clusters, self.connections, client.clock, signals, overrides)
        context = ClusterContext(
            client,
            settings,
            caches,
            secrets,
            ObjectStore(client, caches),
            PortProbe(client.clock, connect),
            recorder,
            signals,
            clusters,
            rejected_files,
            self.connections,
            endpoints,
            changes,
            PartitionDrift(client, clusters, self.connections, changes, signals, recorder),
        )
        for new in reconcilers:
            reconciler = new(context)
            controller = Controller(
                reconciler.name,
                reconciler.run,
                clock=client.clock,
                metrics=client.metrics,
                concurrency=settings.workers_of(reconciler.name),
            )
            subscribe(controller, reconciler, caches.store, caches.store.of, signals)
            manager.add(controller)
        manager.run_while_leading(self.connections.run)
        self.webhooks = (
            Webhooks(client, manager, clusters, settings) if settings.webhooks.port else None
        )


async def run(settings: Settings) -> None:
    """Run the operator until SIGTERM. Raises KubeError and OSError when it cannot start."""
    config = load()
    transport = HttpTransport(config)
    try:
        client = Client(transport)
        lease = None
        if settings.leader_elect:
            lease = Lease(
                Client(transport, metrics=client.metrics),
                settings.lease_namespace,
                LEASE,
                settings.identity,
            )
        recorder = Recorder(client, REPORTER, settings.identity)
        manager = Manager(client, lease=lease, recorder=recorder, namespaces=settings.namespaces)
        Operator(client, manager, recorder, settings)
        async with serve(
            client.metrics.registry,
            alive=lambda: None,
            ready=manager.not_ready,
            host=settings.health_host,
            health_port=settings.health_port,
            metrics_host=settings.metrics_host,
            metrics_port=settings.metrics_port or None,
        ):
            log.info("starting", server=config.server, identity=settings.identity)
            await manager.run(signals=True)
    finally:
        await transport.close()
