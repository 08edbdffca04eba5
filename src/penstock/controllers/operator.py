"""The whole operator, put together: caches, loops, and what wakes which loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog

from penstock.api.kubernetes.kinds import Node, Pod, Secret
from penstock.api.kubernetes.resource import Resource
from penstock.api.penstock.partition import PARTITIONS, Partition
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky.accounting import ACCOUNTINGS
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.loginset import LOGINSETS
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.api.slinky.restapi import RESTAPIS, RestApi
from penstock.api.slinky.token import TOKENS
from penstock.controllers.admission.webhooks import Webhooks
from penstock.controllers.advice.overridden_fields import OverriddenFieldDetector
from penstock.controllers.partition.changes import PartitionChanges
from penstock.controllers.partition.drift import PartitionDrift
from penstock.controllers.penstock.partition import PartitionReconciler
from penstock.controllers.runtime.caches import (
    World,
    cluster_keys,
    keys,
    owned_by,
    shared_by,
    worker_of,
)
from penstock.controllers.runtime.connectivity import Connect, PortProbe, connect
from penstock.controllers.runtime.metrics import ALL
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.settings import Settings
from penstock.controllers.runtime.slurm_connections import SlurmConnections, service_url
from penstock.controllers.slinky.accounting import AccountingReconciler
from penstock.controllers.slinky.controller import ControllerReconciler, pod_to_controller
from penstock.controllers.slinky.loginset import LoginSetReconciler
from penstock.controllers.slinky.nodeset import NodeSetReconciler, machine_matters
from penstock.controllers.slinky.references import References
from penstock.controllers.slinky.restapi import RestApiReconciler
from penstock.controllers.slinky.token import TokenReconciler
from penstock.kube import Cache, Client, Controller, Index, Lease, Manager, Recorder, Result, serve
from penstock.kube.client.config import load
from penstock.kube.client.transport import HttpTransport
from penstock.slurm.rest.http import Exchange, bounded, largest_reply

T = TypeVar("T")

REPORTER = "penstock.dev/operator"
LEASE = "slurm-operator"
"""The name that slurm-operator uses: in one namespace the two never act at the same time."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Operator:
    """The loops of one process, wired to one manager."""

    def __init__(
        self,
        client: Client,
        manager: Manager,
        recorder: Recorder,
        settings: Settings,
        *,
        url_of: Callable[[RestApi], str] = service_url,
        exchange: Exchange | None = None,
        dial: Connect = connect,
    ) -> None:
        self._client = client
        self._manager = manager
        self._recorder = recorder
        self._settings = settings
        self.world = World(manager, settings)
        self._references = References(self.world)
        self._context = Context(
            client, self.world, ObjectStore(client, self.world), PortProbe(client.clock, dial)
        )
        if exchange is None:
            exchange = bounded(lambda: largest_reply(sum(map(_size, self.world.nodesets))))
        self._connections = SlurmConnections(
            self.world,
            self._slurm_changed,
            url_of,
            client.clock,
            exchange,
            # Asked at each write: the guard is set when the manager begins to wait for the Lease.
            lambda: client.guard is None or client.guard(),
        )
        self._changes = PartitionChanges(self.world, self._connections, client.clock)
        self._drift = PartitionDrift(
            client,
            self.world,
            self._connections,
            self._changes,
            {one.kind: self._events(one) for one in (CONTROLLERS, NODESETS, PARTITIONS)},
        )
        self._set_backs = self._watched_fields()
        for metric in ALL:
            client.metrics.registry.register(metric)
        self._controller = self._loop(
            "controller",
            ControllerReconciler(
                self._context,
                self._events(CONTROLLERS),
                self._connections,
                self._changes,
                self._drift,
            ).guarded,
        )
        self._partition = self._loop(
            "partition",
            PartitionReconciler(
                self._context,
                self._events(PARTITIONS),
                self._connections,
                self._changes,
                self._drift,
            ).guarded,
        )
        self._restapi = self._loop(
            "restapi", RestApiReconciler(self._context, self._events(RESTAPIS)).guarded
        )
        self._loginset = self._loop(
            "loginset", LoginSetReconciler(self._context, self._events(LOGINSETS)).guarded
        )
        self._nodeset = self._loop(
            "nodeset",
            NodeSetReconciler(
                self._context, self._events(NODESETS), self._connections, self._drift
            ).guarded,
        )
        self._link = self._loop("slurm", self._connections.reconcile)
        self._accounting = self._loop(
            "accounting", AccountingReconciler(self._context, self._events(ACCOUNTINGS)).guarded
        )
        self._token = self._loop(
            "token", TokenReconciler(self._context, self._events(TOKENS)).guarded
        )
        self._wire_controller()
        self._wire_members()
        self._wire_token()
        self._wire_accounting()
        self._wire_nodeset()
        self._wire_partition()
        manager.run_while_leading(self._connections.run)
        self.webhooks = (
            Webhooks(client, manager, self.world, settings) if settings.webhooks.port else None
        )

    def _events(self, resource: Resource[Any]) -> Events:
        return Events(self._recorder, resource)

    def _watched_fields(self) -> list[OverriddenFieldDetector]:
        """Of the kinds that a release has objects of."""
        world = self.world
        kinds: tuple[tuple[Cache[Any], Resource[Any]], ...] = (
            (world.controllers, CONTROLLERS),
            (world.nodesets, NODESETS),
            (world.restapis, RESTAPIS),
            (world.loginsets, LOGINSETS),
            (world.accountings, ACCOUNTINGS),
        )
        return [
            OverriddenFieldDetector(self._client, cache, self._events(kind))
            for cache, kind in kinds
        ]

    def _loop(self, name: str, reconcile: Callable[[str], Awaitable[Result]]) -> Controller:
        loop = Controller(
            name,
            reconcile,
            clock=self._client.clock,
            metrics=self._client.metrics,
            concurrency=self._settings.workers_of(name),
        )
        self._manager.add(loop)
        return loop

    def _wire_controller(self) -> None:
        world, loop, link = self.world, self._controller, self._link
        loop.watches(world.controllers, lambda one: [one.metadata.key])
        loop.watches(world.nodesets, cluster_keys, when=_declared_or_fits_more)
        loop.watches(world.secrets, self._controllers_of_secret)
        loop.watches(world.config_maps, self._references.controllers_using_config_map)
        loop.watches(world.config_maps, self._references.controllers_recording_in)
        for cache in _any(world.services, world.config_maps, world.stateful_sets, world.monitors):
            loop.watches(cache, owned_by(CONTROLLERS))
        loop.watches(world.pods, pod_to_controller)
        link.watches(world.controllers, lambda one: [one.metadata.key], when=_declared)
        link.watches(world.restapis, cluster_keys, when=_declared)
        # The link to an external slurmctld is needed until the last of them is gone.
        link.watches(world.nodesets, cluster_keys, when=_asks_outside)
        link.watches(world.secrets, self._references.controllers_using_secret)

    def _wire_members(self) -> None:
        world = self.world
        rest, login = self._restapi, self._loginset
        rest.watches(world.restapis, lambda one: [one.metadata.key])
        rest.watches(
            world.controllers, lambda c: keys(world.restapis_of.get(c.metadata.key)), when=_declared
        )
        login.watches(world.loginsets, lambda one: [one.metadata.key])
        login.watches(
            world.controllers,
            lambda c: keys(world.loginsets_of.get(c.metadata.key)),
            when=_declared,
        )
        for loop, kind, component in (
            (rest, RESTAPIS, "slurmrestd"),
            (login, LOGINSETS, "login"),
        ):
            for cache in _any(world.services, world.deployments, world.config_maps):
                loop.watches(cache, owned_by(kind))
            loop.watches(world.pods, _pods_of(component))
        rest.watches(
            world.secrets, _members(self._references.controllers_using_secret, world.restapis_of)
        )
        rest.watches(
            world.config_maps,
            _members(self._references.controllers_using_config_map, world.restapis_of),
        )
        # slurmrestd starts again with a slurm.conf that was delivered.
        rest.watches(world.config_maps, _members(owned_by(CONTROLLERS), world.restapis_of))
        login.watches(world.secrets, self._loginsets_of_secret)

    def _wire_token(self) -> None:
        world, loop = self.world, self._token
        loop.watches(world.tokens, lambda one: [one.metadata.key])
        loop.watches(world.secrets, self._references.tokens_of_secret)
        loop.watches(world.secrets, owned_by(TOKENS))
        # A key that is missing may be about to be generated by a Controller.
        loop.watches(world.controllers, self._references.tokens_in_namespace, when=_declared)
        # slurm.conf says whether tokens may tell who their user is.
        self._controller.watches(world.tokens, world.honoured_by, when=_declared)

    def _wire_accounting(self) -> None:
        world, loop = self.world, self._accounting
        loop.watches(world.accountings, lambda one: [one.metadata.key])
        for cache in _any(world.services, world.stateful_sets, world.secrets):
            loop.watches(cache, owned_by(ACCOUNTINGS))
        loop.watches(world.pods, _pods_of("slurmdbd"))
        loop.watches(world.secrets, self._references.accountings_of_secret)
        loop.watches(world.config_maps, self._references.accountings_of_config_map)
        # A key that is missing may be about to be generated by a Controller.
        loop.watches(world.controllers, self._references.accountings_in_namespace, when=_declared)
        self._controller.watches(
            world.accountings, self._references.controllers_using_accounting, when=_declared_or_told
        )
        self._restapi.watches(
            world.accountings,
            _members(self._references.controllers_using_accounting, world.restapis_of),
            when=_declared,
        )

    def _wire_nodeset(self) -> None:
        world, loop = self.world, self._nodeset
        loop.watches(world.nodesets, lambda one: [one.metadata.key])
        loop.watches(
            world.controllers, lambda c: keys(world.nodesets_of.get(c.metadata.key)), when=_declared
        )
        loop.watches(world.pods, owned_by(NODESETS))
        loop.watches(world.nodes, self._nodesets_on, when=machine_matters)
        loop.watches(world.claims, worker_of)
        for cache in _any(world.services, world.budgets):
            loop.watches(cache, shared_by(NODESETS))
        loop.watches(
            world.secrets, _members(self._references.controllers_using_secret, world.nodesets_of)
        )
        loop.watches(
            world.secrets, lambda one: self._references.users_of_sssd_conf(one).get("NodeSet", [])
        )
        # gres.conf is compared with what a NodeSet says.
        loop.watches(
            world.config_maps,
            _members(self._references.controllers_using_config_map, world.nodesets_of),
        )

    def _wire_partition(self) -> None:
        world, loop = self.world, self._partition
        loop.watches(world.partitions, lambda one: [one.metadata.key])
        loop.watches(
            world.controllers,
            lambda c: keys(world.partitions_of.get(c.metadata.key)),
            when=_declared,
        )
        loop.watches(
            world.nodesets,
            lambda n: [k for c in cluster_keys(n) for k in keys(world.partitions_of.get(c))],
            when=_declared,
        )
        # Who keeps a name, and who gets it next, is decided among all of a cluster.
        loop.watches(
            world.partitions,
            lambda p: [k for c in cluster_keys(p) for k in keys(world.partitions_of.get(c))],
            when=_declared,
        )
        self._controller.watches(world.partitions, cluster_keys, when=_declared)
        self._controller.watches(world.pods, self._clusters_of_worker, when=_labelled)
        self._controller.watches(world.nodes, self._clusters_on, when=_labelled)
        self._changes.again = self._controller.queue.add_after
        self._changes.done = self._partitions_told
        self._connections.partitions_heard = self._partitions_heard
        self._connections.registration_changed = self._controller.queue.add
        self._drift.changed = self._drift_changed

    def _partitions_told(self, key: str) -> None:
        self._partitions_changed(key)
        self._own_partitions_changed(key)

    def _partitions_heard(self, key: str) -> None:
        self._drift.heard(key)
        self._partitions_changed(key)
        one = self.world.controllers.get(key)
        if one is not None and one.spec.external:
            self._own_partitions_changed(key)

    def _drift_changed(self, key: str) -> None:
        self._controller.queue.add(key)
        self._own_partitions_changed(key)

    def _own_partitions_changed(self, key: str) -> None:
        for one in self.world.nodesets_of.get(key):
            if one.spec.partition is not None:
                self._nodeset.queue.add(one.metadata.key)

    def _partitions_changed(self, key: str) -> None:
        for one in self.world.partitions_of.get(key):
            self._partition.queue.add(one.metadata.key)

    def _clusters_of_worker(self, pod: Pod) -> list[str]:
        """Key of the Controller of a worker pod, if a Partition of it selects workers."""
        key = f"{pod.metadata.namespace}/{pod.metadata.labels.get(slinky_labels.CLUSTER, '')}"
        return [key] if any(map(_selects, self.world.partitions_of.get(key))) else []

    def _clusters_on(self, node: Node) -> list[str]:
        pods = self.world.pods_on.get(node.metadata.name)
        return list(dict.fromkeys(k for pod in pods for k in self._clusters_of_worker(pod)))

    def _slurm_changed(self, key: str) -> None:
        for nodeset in self.world.nodesets_of.get(key):
            self._nodeset.queue.add(nodeset.metadata.key)
        one = self.world.controllers.get(key)
        outside = one is not None and one.spec.external
        if outside or any(map(_one_by_one, self.world.partitions_of.get(key))):
            self._controller.queue.add(key)

    def _controllers_of_secret(self, secret: Secret) -> list[str]:
        by_sssd = self._references.users_of_sssd_conf(secret).get("Controller", [])
        return [
            *self._references.controllers_using_secret(secret),
            *by_sssd,
            *owned_by(CONTROLLERS)(secret),
        ]

    def _loginsets_of_secret(self, secret: Secret) -> list[str]:
        by_cluster = _members(self._references.controllers_using_secret, self.world.loginsets_of)(
            secret
        )
        by_sssd = self._references.users_of_sssd_conf(secret).get("LoginSet", [])
        return [*by_cluster, *by_sssd, *owned_by(LOGINSETS)(secret)]

    def _nodesets_on(self, node: Node) -> list[str]:
        pods = self.world.pods_on.get(node.metadata.name)
        others = keys(self.world.nodesets_on_machines.get(""))
        return [*(key for pod in pods for key in owned_by(NODESETS)(pod)), *others]


def _size(nodeset: NodeSet) -> int:
    """How many Slurm nodes it has, or is to have."""
    return max(nodeset.spec.replicas, nodeset.status.replicas)


def _any(*caches: Cache[Any]) -> tuple[Cache[Any], ...]:
    return caches


def _declared(old: Any, new: Any) -> bool:
    """Whether more than the status changed."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (
        before.generation != after.generation
        or before.deleting != after.deleting
        or before.uid != after.uid
    )


def _asks_outside(old: NodeSet | None, new: NodeSet | None) -> bool:
    """Whether a NodeSet came or went that remembers how its external slurmctld is asked."""
    before = old.status.external_slurm if old is not None else None
    after = new.status.external_slurm if new is not None else None
    return (before is None) != (after is None)


def _declared_or_fits_more(old: NodeSet | None, new: NodeSet | None) -> bool:
    """Whether more changed than the status, or machines in DaemonSet mode came or went."""
    if _declared(old, new) or old is None or new is None:
        return True
    return new.spec.scaling_mode == "DaemonSet" and old.status.desired != new.status.desired


def _declared_or_told(old: Any, new: Any) -> bool:
    """Whether more changed than the time at which a condition was written."""
    if _declared(old, new):
        return True
    told = [{one.type: one.status for one in obj.status.conditions} for obj in (old, new)]
    return told[0] != told[1]


def _labelled(old: Any, new: Any) -> bool:
    """Whether labels changed, or a pod came to its machine."""
    if old is None or new is None:
        return True
    return old.metadata.labels != new.metadata.labels or getattr(
        old.spec, "node_name", None
    ) != getattr(new.spec, "node_name", None)


def _one_by_one(partition: Partition) -> bool:
    """Whether its nodes may change with those that slurmctld knows."""
    return bool(partition.spec.nodes) or _selects(partition)


def _selects(partition: Partition) -> bool:
    return partition.spec.selector is not None


def _pods_of(component: str) -> Callable[[Pod], list[str]]:
    def keys_of(pod: Pod) -> list[str]:
        labels = pod.metadata.labels
        if labels.get("app.kubernetes.io/name") != component:
            return []
        return [f"{pod.metadata.namespace}/{labels.get('app.kubernetes.io/instance', '')}"]

    return keys_of


def _members(clusters: Callable[[T], list[str]], members: Index[Any]) -> Callable[[T], list[str]]:
    """A function from an object to the keys of the members of the clusters it matters to."""
    return lambda obj: [key for one in clusters(obj) for key in keys(members.get(one))]


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
