"""The connection to each cluster's Slurm: which slurmrestd, with which token, mirrored.

Which slurmrestd a cluster has is known to its API (`SlurmEndpoints`). The connection follows it as
that changes; while there is none, everything about Slurm is Unknown, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import cache

import structlog
from prometheus_client import Counter

from penstock.controllers.observed.slurm_endpoints import SLURM_USER, SlurmEndpoints, Target
from penstock.controllers.runtime.metrics import SLURM_CALLS
from penstock.controllers.runtime.signals import PARTITIONS_POLLED, REGISTRATION, SLURM
from penstock.kube import NotLeaderError, Result
from penstock.kube.cache.on_demand import NotLoadedError
from penstock.kube.client.clock import Clock
from penstock.kube.runtime.declaration import Signals
from penstock.slurm.auth import jwt
from penstock.slurm.known import Unknown
from penstock.slurm.mirror.accounting_registration import RegistrationMirror
from penstock.slurm.mirror.nodes_and_jobs import Mirror
from penstock.slurm.mirror.pace import stretch
from penstock.slurm.mirror.partitions import PartitionMirror
from penstock.slurm.mirror.reservations import ReservationMirror
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.http import Exchange, bounded, largest_reply

LIFETIME_S = 900
RESTART_S = 5.0
UNCONNECTED = Unknown("there is no connection to Slurm")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Tokens:
    """Tokens of a user signed with one key; renewed when a fifth of the life is left."""

    def __init__(self, key: bytes, now: Callable[[], float], user: str = SLURM_USER) -> None:
        self._key = key
        self._now = now
        self._user = user
        self._token = ""
        self._renew_at = 0.0

    def __call__(self) -> str:
        """A token that is valid now."""
        now = self._now()
        if now >= self._renew_at or now < self._renew_at - LIFETIME_S:
            self._token = jwt.mint(self._key, self._user, LIFETIME_S, now)
            self._renew_at = now + 0.8 * LIFETIME_S
        return self._token


@dataclass(slots=True)
class SlurmConnection:
    """One cluster's mirrors and the client behind them."""

    uid: str
    """Of the object that declares the cluster; empty if that was gone already."""
    mirror: Mirror
    partitions: PartitionMirror
    reservations: ReservationMirror
    registration: RegistrationMirror
    client: Slurmrestd | None = None
    target: Target | None = None
    tasks: tuple[asyncio.Task[None], ...] = ()
    registering: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Locked while stand-ins of `penstock.slurm.rest.node_registration` are in slurmctld."""
    shares_comments: bool = False
    """Whether checks write comments of nodes beside the operator's record."""
    comments: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Locked between reading comments of nodes and writing them: each has parts of two writers."""
    states: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Locked between reading states of nodes and changing them: a drain replaces another one."""
    swept: Slurmrestd | None = None
    """The client with which stand-ins of a killed process were searched."""

    def endpoint(self, client: Slurmrestd | None, why: str = "") -> None:
        """Ask this slurmrestd from now on, or nobody, because of `why`."""
        self.client = client
        for mirror in (self.mirror, self.partitions, self.reservations, self.registration):
            mirror.endpoint(client, why)

    @property
    def has_answered(self) -> bool:
        """Whether that Slurm has answered this process, or no connection is possible."""
        return self.client is None or self.mirror.snapshot.asked_at is not None


class SlurmConnections:
    """The connections of all clusters of one API. Signals report what is new of a cluster.

    `exchange` is how slurmrestd is spoken to, and `may_write` whether this process leads at this
    very moment. `shares_comments`: see SlurmConnection.
    """

    def __init__(
        self,
        endpoints: SlurmEndpoints,
        signals: Signals,
        clock: Clock,
        exchange: Exchange | None = None,
        may_write: Callable[[], bool] = lambda: True,
        *,
        shares_comments: bool = False,
    ) -> None:
        self._shares_comments = shares_comments
        self._endpoints = endpoints
        self._signals = signals
        self._clock = clock
        self._exchange = exchange or bounded(
            lambda: largest_reply(endpoints.largest_size()), largest_reply(0)
        )
        self._may_write = may_write
        self._connections: dict[str, SlurmConnection] = {}
        self._started: asyncio.Future[asyncio.TaskGroup] = (
            asyncio.get_running_loop().create_future()
        )

    def first(self, keys: Iterable[str]) -> SlurmConnection | None:
        """The first connection of these clusters, if there is one yet."""
        return next(filter(None, map(self.get, keys)), None)

    def get(self, key: str) -> SlurmConnection | None:
        """The connection of a cluster, if there is one yet: not that of a former one of the name.

        It may outlive the object that declares the cluster (`SlurmEndpoint.outlives`). A cluster
        whose connection was got lately is not at rest.
        """
        if (link := self.peek(key)) is not None:
            link.mirror.record_use()
        return link

    def peek(self, key: str) -> SlurmConnection | None:
        """The same for one who follows the mirrors' answers: a cluster at rest stays so."""
        link = self._connections.get(key)
        return link if link is None or self._endpoints.uid(key) in ("", link.uid) else None

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
        """Bring the connection of one cluster up to its endpoint."""
        group = await self._started
        try:
            return self._connect(key, group)
        except NotLoadedError:
            # It stays as it is until the key is there.
            raise
        except Exception as error:
            if (link := self._connections.get(key)) is not None:
                link.target = None
                why = f"the connection failed: {type(error).__name__}: {error}"
                link.endpoint(None, why[:300])
                self._changed(key)
            raise

    def _connect(self, key: str, group: asyncio.TaskGroup) -> Result:
        found, link = self._endpoints.find(key), self._connections.get(key)
        if link is not None and found is not None and found.uid not in ("", link.uid):
            # Another cluster of that name: nothing that was known of the former one holds for it.
            self._drop(key)
            link = None
        if found is None:
            self._drop(key)
            return Result()
        link = link or self._open(key, found.uid, group)
        target = found.target
        if isinstance(target, str) and found.outlives:
            # slurmrestd and key may be deleted in any order.
            target = link.target or found.remembered or target
        if isinstance(target, str):
            link.target = None
            link.endpoint(None, target)
        elif target != link.target:
            link.target = target
            link.endpoint(
                Slurmrestd(
                    target.url,
                    Tokens(target.key, self._clock.time, target.user),
                    on_call=_counted(key),
                    exchange=self._exchange,
                    fence=self._fence,
                )
            )
            log.info("slurmrestd chosen", controller=key, url=target.url)
        self._changed(key)
        return Result()

    def _open(self, key: str, uid: str, group: asyncio.TaskGroup) -> SlurmConnection:
        clock, signals = self._clock.monotonic, self._signals
        mirror = Mirror(clock=clock, stretch=lambda: stretch(len(self._connections)))
        link = SlurmConnection(
            uid,
            mirror,
            PartitionMirror(
                lambda: signals.emit(PARTITIONS_POLLED, key),
                clock=clock,
                stretch=lambda: mirror.stretch,
            ),
            ReservationMirror(lambda: self._changed(key), clock=clock),
            RegistrationMirror(lambda: signals.emit(REGISTRATION, key), clock=clock),
            shares_comments=self._shares_comments,
        )
        link.mirror.subscribe(lambda _: self._changed(key))
        link.tasks = (
            group.create_task(self._keep(key, link.mirror.run)),
            group.create_task(self._keep(key, link.partitions.run)),
            group.create_task(self._keep(key, link.reservations.run)),
            group.create_task(self._keep(key, link.registration.run)),
        )
        self._connections[key] = link
        # Its cluster may have been reconciled before there was anybody to ask.
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


def _counted(controller: str) -> Callable[[str, str], None]:
    @cache
    def counter(method: str, what: str) -> Counter:
        return SLURM_CALLS.labels(controller, method, what)

    def count(method: str, path: str) -> None:
        # The object's name would make a series per node.
        what = path.strip("/").split("/")[2:3] or ["openapi"]
        counter(method, what[0]).inc()

    return count
