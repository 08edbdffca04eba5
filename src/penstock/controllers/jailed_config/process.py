"""The process `sconfigcontroller` of one cluster: its parts, start and end.

It has the jail mounted and needs no right beyond the namespace of its cluster:

    rules:
    - apiGroups: [""]
      resources: [configmaps]
      verbs: [get, list, watch]
    - apiGroups: [""]
      resources: [secrets]
      resourceNames: [<cluster>-rest-jwt-key]
      verbs: [get]
    - apiGroups: [slurm.nebius.ai]
      resources: [jailedconfigs]
      verbs: [get, list, watch]
    - apiGroups: [slurm.nebius.ai]
      resources: [jailedconfigs/status]
      verbs: [patch]
    - apiGroups: [coordination.k8s.io]
      resources: [leases]
      verbs: [get, create, patch]
    - apiGroups: [events.k8s.io]
      resources: [events]
      verbs: [create, patch]

`--metrics-secure` also needs `create` of tokenreviews (authentication.k8s.io) and of
subjectaccessreviews (authorization.k8s.io), which are cluster-wide.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from penstock import __version__
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.jailed_config.arguments import Arguments
from penstock.controllers.jailed_config.delivery import DeliveryReconciler
from penstock.controllers.jailed_config.jail_files import JailFiles
from penstock.controllers.jailed_config.jail_worker import JailWorker
from penstock.controllers.jailed_config.metrics import ALL
from penstock.controllers.jailed_config.reconciler import JailedConfigReconciler
from penstock.controllers.jailed_config.reconfiguration import Reconfigurations
from penstock.controllers.jailed_config.secure_metrics import serve_securely
from penstock.controllers.jailed_config.slurm_access import SlurmAccess
from penstock.controllers.jailed_config.status_writer import StatusWriter
from penstock.kube import Client, Clock, Controller, Lease, Manager, Recorder, Transport, serve
from penstock.kube.client.config import load
from penstock.kube.client.transport import HttpTransport
from penstock.kube.runtime.declaration import Signals, subscribe
from penstock.slurm.rest.http import Exchange, exchange

REPORTER = "penstock.dev/sconfigcontroller"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class ConfigController:
    """The two reconcilers and their manager."""

    def __init__(
        self,
        transport: Transport,
        arguments: Arguments,
        *,
        clock: Clock | None = None,
        exchange: Exchange = exchange,
    ) -> None:
        space, cluster = arguments.namespace, arguments.cluster
        self.client = client = Client(transport, clock=clock)
        for metric in ALL:
            client.metrics.registry.register(metric)
        lease = None
        if arguments.leader_elect:
            # The name that soperator's uses: the two never write at the same time.
            lease = Lease(
                Client(transport, clock=clock, metrics=client.metrics),
                space,
                f"{cluster}.vqeyz6ae.nebius.ai",
                arguments.identity,
            )
        self._lease = lease
        recorder = Recorder(client, REPORTER, arguments.identity)
        self.manager = Manager(client, lease=lease, recorder=recorder, namespaces=(space,))
        store, signals = CacheStore(self.manager), Signals()
        self.jail = JailWorker(JailFiles(arguments.jail), client.clock, self._may_write)
        slurm = SlurmAccess(client, space, cluster, arguments.slurmrestd, exchange)
        self.delivery = DeliveryReconciler(space, cluster, store, self.jail, recorder, signals)
        reconfigurations = Reconfigurations(
            slurm.slurmrestd,
            client.clock,
            poll_s=arguments.poll_s,
            timeout_s=arguments.timeout_s,
        )
        jailed_configs = JailedConfigReconciler(
            space,
            cluster,
            store,
            self.jail,
            StatusWriter(client, recorder),
            reconfigurations,
        )
        for one in (self.delivery, jailed_configs):
            controller = Controller(one.name, one.run, clock=client.clock, metrics=client.metrics)
            subscribe(controller, one, store, store.of, signals)
            self.manager.add(controller)

    def not_ready(self) -> str | None:
        """Why this process is of no use now; a standby is ready."""
        problem = self.manager.not_ready() or self.jail.problem()
        return problem or (self.delivery.problem if self._may_write() else None)

    def _may_write(self) -> bool:
        return self._lease is None or self._lease.is_leading()


async def run(arguments: Arguments) -> None:
    """Run until SIGTERM. Raises KubeError and OSError when it cannot start."""
    config = load()
    transport = HttpTransport(config)
    controller = ConfigController(transport, arguments)
    try:
        async with serving(controller, transport, arguments):
            log.info(
                "starting",
                version=__version__,
                server=config.server,
                identity=arguments.identity,
            )
            await controller.manager.run(signals=True)
    finally:
        controller.jail.close()
        await transport.close()


@asynccontextmanager
async def serving(
    controller: ConfigController, transport: Transport, arguments: Arguments
) -> AsyncGenerator[None]:
    """Serve probes and metrics while the block runs."""
    registry, metrics = controller.client.metrics.registry, arguments.metrics
    plain = metrics.port if metrics.port and not arguments.metrics_secure else None
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            serve(
                registry,
                alive=lambda: None,
                ready=controller.not_ready,
                host=arguments.health.host,
                health_port=arguments.health.port,
                metrics_host=metrics.host,
                metrics_port=plain,
            )
        )
        if metrics.port and arguments.metrics_secure:
            await stack.enter_async_context(
                serve_securely(Client(transport), registry, metrics.host, metrics.port)
            )
        yield
