"""The whole operator: builds the controllers of each API group, starts them and stops them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from penstock import __version__
from penstock.api.registry import groups_beside
from penstock.controllers.admission.handlers import Admission
from penstock.controllers.admission.webhooks import Webhooks
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.registry import SERVED_APIS
from penstock.controllers.runtime import kubernetes_version
from penstock.controllers.runtime.connectivity import Connect, connect
from penstock.controllers.runtime.metrics import ALL
from penstock.controllers.runtime.served_api import ApiControllers, ApiParts, ServedApi
from penstock.controllers.runtime.settings import Settings
from penstock.kube import Client, Controller, Lease, Manager, Recorder, serve
from penstock.kube.client.config import load
from penstock.kube.client.transport import HttpTransport, Transport
from penstock.kube.runtime.declaration import Signals, subscribe
from penstock.kube.runtime.leader import Leader
from penstock.kube.webhook.review import Handler
from penstock.slurm.rest.http import Exchange

if TYPE_CHECKING:
    from penstock.controllers.nebius.clusters import NebiusClusters
    from penstock.controllers.observed.slinky_clusters import SlinkyClusters
    from penstock.controllers.runtime.slurm_connections import SlurmConnections
    from penstock.controllers.slinky.controllers import SlinkyControllers

T = TypeVar("T", bound=ApiControllers)
REPORTER = "penstock.dev/operator"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Operator:
    """The reconcilers of one process, each with its queue, and one manager that runs them.

    Those of an API group run by its Leader in `leaders`, else by the manager's own, which writes
    with `client` and emits with `recorder`. Groups that the settings do not name are left alone.
    """

    def __init__(
        self,
        client: Client,
        manager: Manager,
        recorder: Recorder,
        settings: Settings,
        *,
        leaders: Mapping[str, Leader] | None = None,
        url_of: Callable[[Any], str] | None = None,
        exchange: Exchange | None = None,
        connect: Connect = connect,
        apis: Sequence[ServedApi] = SERVED_APIS,
    ) -> None:
        for metric in ALL:
            client.metrics.registry.register(metric)
        served = [one for one in apis if one.group in settings.apis]
        store = CacheStore(
            manager,
            [name for one in served for name in one.pods],
            [name for one in served for name in one.pvcs],
        )
        self._built: list[ApiControllers] = []
        used: list[Leader] = []
        for api in served:
            leader = (leaders or {}).get(api.group, manager.leader)
            parts = ApiParts(
                leader.client,
                leader.recorder or recorder,
                settings,
                store,
                Signals(),
                connect,
                exchange,
                url_of,
            )
            self._built.append(_started(api, parts, leader))
            if leader not in used:
                used.append(leader)
        self.webhooks: Webhooks | None = None
        if settings.webhooks.port:
            rules = Admission(store.of, settings.namespaces, groups_beside(settings.apis)).handlers
            own = {path: one for built in self._built for path, one in built.handlers.items()}
            handlers: dict[str, Handler] = {**rules, **own}
            self.webhooks = Webhooks(manager, settings, handlers, used)

    @property
    def clusters(self) -> SlinkyClusters:
        """Slinky's clusters. Raises LookupError where that API is not served."""
        return self._slinky().clusters

    @property
    def slurm_clusters(self) -> NebiusClusters:
        """SlurmClusters. Raises LookupError where that API is not served."""
        from penstock.controllers.nebius.controllers import NebiusControllers

        return self._of(NebiusControllers).clusters

    @property
    def connections(self) -> SlurmConnections:
        """Connections to the Slurm of Slinky's clusters. Raises LookupError where not served."""
        return self._slinky().connections

    def _slinky(self) -> SlinkyControllers:
        # Without Slinky's group, the process starts without its modules (`controllers.registry`).
        from penstock.controllers.slinky.controllers import SlinkyControllers

        return self._of(SlinkyControllers)

    def _of(self, type_: type[T]) -> T:
        for one in self._built:
            if isinstance(one, type_):
                return one
        raise LookupError(f"{type_.__name__} are of an API that this process does not serve")


def _started(api: ServedApi, parts: ApiParts, leader: Leader) -> ApiControllers:
    """Build the controllers of a group and have them run while the process leads for it."""
    built, client, store = api.build(parts), parts.client, parts.store
    for reconciler in built.reconcilers:
        controller = Controller(
            reconciler.name,
            reconciler.run,
            clock=client.clock,
            metrics=client.metrics,
            concurrency=parts.settings.workers_of(reconciler.name),
        )
        subscribe(controller, reconciler, store, store.of, parts.signals)
        leader.add(controller)
    for run in built.beside:
        leader.run_while_leading(run)
    return built


def candidate(
    transport: Transport,
    settings: Settings,
    *,
    client: Client | None = None,
    apis: Sequence[ServedApi] = SERVED_APIS,
) -> tuple[Manager, dict[str, Leader]]:
    """A manager that waits for the Lease of each API group of the settings, and their Leaders.

    The first one's is the manager's own. Each writes with a client of its own.
    """
    client = client if client is not None else Client(transport)
    served = [one for one in apis if one.group in settings.apis]

    def another() -> Client:
        return Client(transport, clock=client.clock, metrics=client.metrics)

    def lease_of(api: ServedApi) -> Lease:
        space = settings.lease_namespace
        return Lease(another(), space, api.lease, settings.identity)

    first, *others = served
    manager = Manager(
        client,
        lease=lease_of(first),
        recorder=Recorder(client, REPORTER, settings.identity),
        namespaces=settings.namespaces,
    )
    leaders = {first.group: manager.leader}
    for api in others:
        own = another()
        recorder = Recorder(own, REPORTER, settings.identity)
        leaders[api.group] = Leader(own, lease=lease_of(api), recorder=recorder)
        manager.add_leader(leaders[api.group])
    return manager, leaders


async def run(settings: Settings) -> None:
    """Run the operator until SIGTERM.

    Raises KubeError and OSError when it cannot start, and SystemExit on a Kubernetes that is not
    supported.
    """
    config = load()
    transport = HttpTransport(config)
    try:
        client = Client(transport)
        recorder = Recorder(client, REPORTER, settings.identity)
        leaders: dict[str, Leader] = {}
        if settings.leader_elect:
            manager, leaders = candidate(transport, settings, client=client)
        else:
            manager = Manager(client, recorder=recorder, namespaces=settings.namespaces)
        Operator(client, manager, recorder, settings, leaders=leaders)
        gc.enable()
        async with serve(
            client.metrics.registry,
            alive=manager.not_alive,
            ready=manager.not_ready,
            host=settings.health_host,
            health_port=settings.health_port,
            metrics_host=settings.metrics_host,
            metrics_port=settings.metrics_port or None,
        ):
            log.info(
                "starting",
                version=__version__,
                server=config.server,
                identity=settings.identity,
                apis=",".join(settings.apis),
            )
            await kubernetes_version.check(transport)
            await manager.run(signals=True)
    finally:
        await transport.close()
