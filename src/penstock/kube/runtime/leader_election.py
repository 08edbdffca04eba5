"""Leader election on a Lease, so that one process acts and the others wait.

Source: Kubernetes API reference, Lease v1 (coordination.k8s.io); the algorithm of client-go's
leaderelection: nobody's clock is trusted, a lease counts as expired when it was *seen* unchanged
for its whole duration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.kube.client.backoff import Backoff
from penstock.kube.client.client import Client
from penstock.kube.client.clock import deadline, micro_time
from penstock.kube.client.errors import ConflictError, KubeError, NotFoundError, NotLeaderError


class LeaseSpec(KubeStruct, frozen=True):
    """Who holds a Lease and until when."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class LeaseObject(KubeObject, frozen=True):
    """A Lease."""

    spec: LeaseSpec = LeaseSpec()


LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", LeaseObject)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. A leader that could not renew for `renew` stops; others wait for `duration`.

    The difference is the time a former leader has to stop before another may begin.
    """

    duration: int = 15
    renew: float = 10.0
    retry: float = 2.0


class Lease:
    """One candidate for a Lease of the cluster.

    `client` should be one of its own, so that no traffic of the controllers delays a renewal.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        timing: Timing | None = None,
    ) -> None:
        self.identity = identity
        self._client = client
        self._clock = client.clock
        self._namespace = namespace
        self._name = name
        self._timing = timing if timing is not None else Timing()
        self._backoff = Backoff(self._timing.retry, self._timing.retry)
        self._seen: LeaseSpec | None = None
        self._seen_at = 0.0
        self._renewed_at: float | None = None
        self._tried_at: float | None = None

    @property
    def name(self) -> str:
        """Name of the Lease."""
        return self._name

    @property
    def holder(self) -> str:
        """Holder of the Lease when it was last read."""
        return (self._seen and self._seen.holder_identity) or ""

    def is_leading(self) -> bool:
        """Whether this process may act at this very moment.

        False as soon as the last renewal is too long ago, even if the event loop was stopped in
        between and no callback ran: use it as `Client.guard`.
        """
        return self._left() > 0

    def idle(self) -> float:
        """Seconds since this candidate last tried to take or renew the Lease.

        0 while it does not want it. A server that is away is tried as well.
        """
        return 0.0 if self._tried_at is None else self._clock.monotonic() - self._tried_at

    async def acquire(self) -> None:
        """Wait until this candidate leads."""
        while not await self._attempt():
            await self._clock.sleep(self._backoff.delay(1))
        log.info("leading", lease=self._name, identity=self.identity)

    async def renew(self) -> None:
        """Renew until cancelled. Raises NotLeaderError when that fails for too long."""
        while True:
            await self._clock.sleep(self._timing.retry)
            if not await self._attempt() and not self.is_leading():
                raise NotLeaderError(f"lost the lease {self._namespace}/{self._name}")

    async def release(self) -> None:
        """Let another candidate begin at once. Call it after everything has stopped."""
        if not self.is_leading():
            return
        self._renewed_at = None
        try:
            async with deadline(self._clock, self._timing.renew / 2):
                lease = await self._client.get(LEASES, self._namespace, self._name)
                if lease.spec.holder_identity == self.identity:
                    await self._write(lease, holder="")
        except (KubeError, TimeoutError) as error:
            # It runs out by itself.
            log.warning("lease not released", lease=self._name, error=str(error))

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease, do `work` while holding it, release it when `work` returns.

        Raises NotLeaderError, with `work` cancelled, when the Lease is lost.
        """
        await self.acquire()
        try:
            async with asyncio.TaskGroup() as group:
                holding = group.create_task(self.renew())
                await work()
                holding.cancel()
        finally:
            self._tried_at = None
            await self.release()

    async def _attempt(self) -> bool:
        """Take or renew; whether the Lease is ours now."""
        # A renewal counts from when it was asked for: the answer may have taken a while.
        asked_at = self._tried_at = self._clock.monotonic()
        left = self._left() or self._timing.renew
        try:
            async with deadline(self._clock, min(left, self._timing.renew / 2)):
                ours = await self._take()
        except ConflictError:
            # Another candidate wrote it; the next attempt finds who leads.
            return False
        except (KubeError, TimeoutError) as error:
            log.warning("lease not renewed", lease=self._name, error=repr(error))
            return False
        self._renewed_at = asked_at if ours else None
        return ours

    def _left(self) -> float:
        """Seconds for which this process may still act."""
        if self._renewed_at is None:
            return 0.0
        return max(0.0, self._renewed_at + self._timing.renew - self._clock.monotonic())

    async def _take(self) -> bool:
        try:
            lease = await self._client.get(LEASES, self._namespace, self._name)
        except NotFoundError:
            await self._client.create(LEASES, self._manifest(self._spec(None)))
            return True
        if lease.spec != self._seen:
            self._seen = lease.spec
            self._seen_at = self._clock.monotonic()
        holder = lease.spec.holder_identity
        if holder and holder != self.identity and not self._expired(lease.spec):
            return False
        await self._write(lease, holder=self.identity)
        return True

    def _expired(self, spec: LeaseSpec) -> bool:
        duration = max(spec.lease_duration_seconds or 0, self._timing.duration)
        return self._clock.monotonic() - self._seen_at > duration

    async def _write(self, lease: LeaseObject, *, holder: str) -> None:
        spec = self._spec(lease.spec, holder)
        manifest = self._manifest(spec)
        # The version makes two candidates that saw the same expired lease exclude each other.
        manifest["metadata"]["resourceVersion"] = lease.metadata.resource_version
        await self._client.patch(LEASES, self._namespace, self._name, manifest)

    def _spec(self, old: LeaseSpec | None, holder: str | None = None) -> Json:
        now = micro_time(self._clock.time())
        holder = self.identity if holder is None else holder
        same = old is not None and old.holder_identity == holder
        changes = (old.lease_transitions or 0) if old is not None else -1
        return {
            "holderIdentity": holder,
            "leaseDurationSeconds": self._timing.duration if holder else 1,
            "acquireTime": old.acquire_time if same and old else now,
            "renewTime": now,
            "leaseTransitions": changes if same or not holder else changes + 1,
        }

    def _manifest(self, spec: Json) -> Json:
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"namespace": self._namespace, "name": self._name},
            "spec": spec,
        }
