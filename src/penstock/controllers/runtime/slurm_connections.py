"""The connection to each cluster's Slurm: which slurmrestd, with which token, mirrored.

One mirror per Controller. Which slurmrestd it asks follows the RestApis and the JWT key as they
come, change and go; while there is none, everything about Slurm is Unknown and says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache

import structlog
from prometheus_client import Counter

from penstock.api.cluster.external_slurm import ExternalSlurm
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.observed.members import ClusterMember, cluster_keys
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.runtime.metrics import SLURM_CALLS
from penstock.controllers.runtime.signals import PARTITIONS_POLLED, REGISTRATION, SLURM
from penstock.kube import NotLeaderError, Result
from penstock.kube.client.clock import Clock
from penstock.kube.runtime.declaration import Signals
from penstock.slurm import daemons
from penstock.slurm.auth import jwt
from penstock.slurm.known import Unknown
from penstock.slurm.mirror.accounting_registration import RegistrationMirror
from penstock.slurm.mirror.nodes_and_jobs import Mirror
from penstock.slurm.mirror.partitions import PartitionMirror
from penstock.slurm.mirror.reservations import ReservationMirror
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.http import Exchange, bounded, largest_reply

USER = "slurm"
LIFETIME_S = 900
RESTART_S = 5.0
UNCONNECTED = Unknown("there is no connection to Slurm")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Tokens:
    """Tokens of the user `slurm` signed with one key; renewed when a fifth of the life is left."""

    def __init__(self, key: bytes, now: Callable[[], float]) -> None:
        self._key = key
        self._now = now
        self._token = ""
        self._renew_at = 0.0

    def __call__(self) -> str:
        """A token that is valid now."""
        now = self._now()
        if now >= self._renew_at or now < self._renew_at - LIFETIME_S:
            self._token = jwt.mint(self._key, USER, LIFETIME_S, now)
            self._renew_at = now + 0.8 * LIFETIME_S
        return self._token


@dataclass(slots=True)
class SlurmConnection:
    """One cluster's mirrors and the client behind them."""

    uid: str
    """Of the Controller that it was opened for; empty if that was gone already."""
    mirror: Mirror
    partitions: PartitionMirror
    reservations: ReservationMirror
    registration: RegistrationMirror
    client: Slurmrestd | None = None
    target: tuple[str, bytes] | None = None
    tasks: tuple[asyncio.Task[None], ...] = ()
    registering: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while stand-ins of `penstock.slurm.rest.node_registration` are in slurmctld."""
    swept: Slurmrestd | None = None
    """By which client stand-ins that a killed process left were looked for."""

    def endpoint(self, client: Slurmrestd | None, why: str = "") -> None:
        """Ask this slurmrestd from now on, or nobody, because of `why`."""
        self.client = client
        for mirror in (self.mirror, self.partitions, self.reservations, self.registration):
            mirror.endpoint(client, why)

    @property
    def has_answered(self) -> bool:
        """Whether this process has heard of that Slurm, or why it cannot."""
        return self.client is None or self.mirror.snapshot.asked_at is not None


class SlurmConnections:
    """The connections of all clusters. Signals report what is new of a cluster.

    `url_of` says where the slurmrestd of a RestApi listens, `exchange` how it is spoken to, and
    `may_write` whether this process leads at this very moment.
    """

    def __init__(
        self,
        caches: SlinkyCaches,
        secrets: SecretReader,
        signals: Signals,
        url_of: Callable[[RestApi], str],
        clock: Clock,
        exchange: Exchange | None = None,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._caches = caches
        self._secrets = secrets
        self._signals = signals
        self._url_of = url_of
        self._clock = clock
        self._exchange = exchange or bounded(
            lambda: largest_reply(sum(map(_size, caches.nodesets)))
        )
        self._may_write = may_write
        self._connections: dict[str, SlurmConnection] = {}
        self._started: asyncio.Future[asyncio.TaskGroup] = (
            asyncio.get_running_loop().create_future()
        )

    def of(self, member: ClusterMember) -> SlurmConnection | None:
        """The link of the cluster that an object belongs to, if there is one yet."""
        return next(filter(None, map(self.get, cluster_keys(member))), None)

    def get(self, key: str) -> SlurmConnection | None:
        """The link of a Controller, if there is one yet: not that of its predecessor of the name.

        That of an external slurmctld outlives its Controller while NodeSets need it to drain.
        """
        link, controller = self._connections.get(key), self._caches.controllers.get(key)
        if link is None or controller is None or link.uid == controller.metadata.uid:
            return link
        return None

    def external(self, member: NodeSet) -> ExternalSlurm | None:
        """How the slurmctld of a NodeSet is asked if it is outside, to be remembered there."""
        before = member.status.external_slurm
        controller = self._caches.controller_of(member)
        if controller is None:
            return before
        if not controller.spec.external:
            return None
        restapi = oldest_restapi(self._caches.restapis_of.get(controller.metadata.key))
        url = self._url_of(restapi) if restapi is not None else ""
        ref = names.jwt_key_ref(controller)
        return ExternalSlurm(
            url or (before.rest_api_url if before is not None else ""),
            ref.name,
            ref.key,
            before.silent_since if before is not None else "",
        )

    def need_reservations(
        self, uid: str, *, needs: bool, of: SlurmConnection | None = None
    ) -> None:
        """Poll reservations of this one for the object with that uid, or no longer."""
        for one in self._connections.values():
            one.reservations.need(uid, needs and one is of)

    async def run(self) -> None:
        """Keep all mirrors until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._started.set_result(group)
            await asyncio.get_running_loop().create_future()

    async def reconcile(self, key: str) -> Result:
        """Bring one Controller's link up to its RestApis and its JWT key."""
        group = await self._started
        try:
            return self._connect(key, group)
        except Exception as error:
            if (link := self._connections.get(key)) is not None:
                link.target = None
                why = f"the connection failed: {type(error).__name__}: {error}"
                link.endpoint(None, why[:300])
                self._changed(key)
            raise

    def _connect(self, key: str, group: asyncio.TaskGroup) -> Result:
        controller = self._caches.controllers.get(key)
        uid = controller.metadata.uid if controller is not None else ""
        link = self._connections.get(key)
        if link is not None and uid and link.uid != uid:
            # Another cluster of that name: nothing that was known of the former one holds for it.
            self._drop(key)
            link = None
        left = self._left_outside(key)
        if controller is None and left is None:
            self._drop(key)
            return Result()
        link = link or self._open(key, uid, group)
        found = self._target(controller) if controller is not None else ""
        if isinstance(found, str) and left is not None:
            # RestApi and key may go in any order. Whom it asked before it asks as long as it can.
            found = link.target or self._remembered(key, left) or found
        if isinstance(found, str):
            link.target = None
            link.endpoint(None, found or "Controller, RestApi or key are gone")
        elif found != link.target:
            url, secret = found
            link.target = found
            link.endpoint(
                Slurmrestd(
                    url,
                    Tokens(secret, self._clock.time),
                    on_call=_counted(key),
                    exchange=self._exchange,
                    fence=self._fence,
                )
            )
            log.info("slurmrestd chosen", controller=key, url=url)
        self._changed(key)
        return Result()

    def _left_outside(self, key: str) -> ExternalSlurm | None:
        """How an external slurmctld is asked whose Controller is gone or going, if it is needed."""
        controller = self._caches.controllers.get(key)
        if controller is not None and not controller.metadata.deleting:
            return None
        every = (one.status.external_slurm for one in self._caches.nodesets_of.get(key))
        return next((one for one in every if one is not None), None)

    def _remembered(self, key: str, left: ExternalSlurm) -> tuple[str, bytes] | None:
        """URL and JWT key by what a NodeSet remembers, as far as they are still there."""
        ref = SecretKeySelector(name=left.jwt_secret, key=left.jwt_secret_key)
        secret = self._secrets.value(key.partition("/")[0], ref)
        return (left.rest_api_url, secret) if left.rest_api_url and secret is not None else None

    def _target(self, controller: Controller) -> tuple[str, bytes] | str:
        """URL and JWT key, or why there is no slurmrestd to ask."""
        meta = controller.metadata
        restapi = oldest_restapi(self._caches.restapis_of.get(meta.key))
        if restapi is None:
            return f"no RestApi refers to Controller {meta.name}"
        ref = names.jwt_key_ref(controller)
        secret = self._secrets.value(meta.namespace, ref)
        if secret is None:
            return f"Secret {ref.name} has no usable key {ref.key} to sign tokens with"
        return self._url_of(restapi), secret

    def _open(self, key: str, uid: str, group: asyncio.TaskGroup) -> SlurmConnection:
        clock, signals = self._clock.monotonic, self._signals
        link = SlurmConnection(
            uid,
            Mirror(clock=clock),
            PartitionMirror(lambda: signals.emit(PARTITIONS_POLLED, key), clock=clock),
            ReservationMirror(lambda: self._changed(key), clock=clock),
            RegistrationMirror(lambda: signals.emit(REGISTRATION, key), clock=clock),
        )
        link.mirror.subscribe(lambda _: self._changed(key))
        link.tasks = (
            group.create_task(self._keep(key, link.mirror.run)),
            group.create_task(self._keep(key, link.partitions.run)),
            group.create_task(self._keep(key, link.reservations.run)),
            group.create_task(self._keep(key, link.registration.run)),
        )
        self._connections[key] = link
        # Its Controller may have been reconciled before there was anybody to ask.
        signals.emit(REGISTRATION, key)
        return link

    async def _keep(self, key: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a mirror for good: an answer that breaks it must not end the other clusters' too."""
        while True:
            try:
                await run()
            except Exception:
                log.exception("mirror failed", controller=key)
            await self._clock.sleep(RESTART_S)

    def _fence(self) -> None:
        """Keep what would change Slurm back once this process no longer leads.

        Raises NotLeaderError, as writes to Kubernetes do, so that it ends the reconcile: it is no
        answer of Slurm, and nobody may take it for one.
        """
        if not self._may_write():
            raise NotLeaderError("slurmrestd: not the leader")

    def _changed(self, key: str) -> None:
        self._signals.emit(SLURM, key)

    def _drop(self, key: str) -> None:
        link = self._connections.pop(key, None)
        for task in link.tasks if link is not None else ():
            task.cancel()
        self._changed(key)


def service_url(restapi: RestApi) -> str:
    """URL of a RestApi's Service, by its name in the cluster's DNS."""
    port = restapi.spec.service.port or daemons.SLURMRESTD_PORT
    return f"http://{names.restapi_service(restapi)}.{restapi.metadata.namespace}:{port}"


def oldest_restapi(restapis: tuple[RestApi, ...]) -> RestApi | None:
    """Of several RestApis the one that was there first speaks for the cluster."""
    living = [one for one in restapis if not one.metadata.deleting]
    return min(
        living,
        key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name),
        default=None,
    )


def _size(nodeset: NodeSet) -> int:
    """How many Slurm nodes it has, or is to have."""
    return max(nodeset.spec.replicas, nodeset.status.replicas)


def _counted(controller: str) -> Callable[[str, str], None]:
    @cache
    def counter(method: str, what: str) -> Counter:
        return SLURM_CALLS.labels(controller, method, what)

    def count(method: str, path: str) -> None:
        # The object's name would make a series per node.
        what = path.strip("/").split("/")[2:3] or ["openapi"]
        counter(method, what[0]).inc()

    return count
