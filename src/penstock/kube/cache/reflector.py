"""A dependable watch: list, follow, and begin again after whatever may happen to it.

Source: Kubernetes API concepts, "Efficient detection of changes", "Streaming lists".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog
from msgspec import Raw, Struct

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.kube.cache.store import Entry, version_of
from penstock.kube.client.backoff import Backoff
from penstock.kube.client.client import Client, Page, Selector
from penstock.kube.client.clock import Watchdog, deadline
from penstock.kube.client.errors import (
    BadRequestError,
    ForbiddenError,
    GoneError,
    InvalidError,
    KubeError,
    NotFoundError,
    Status,
    UnreachableError,
    status_error,
)
from penstock.kube.client.nesting import decode, shallow

T = TypeVar("T", bound=KubeObject)
T_contra = TypeVar("T_contra", bound=KubeObject, contravariant=True)

INITIAL_END = "k8s.io/initial-events-end"
PAGE_BYTES = 2 << 20
"""Of one page of a list of objects that may be large, from a server that streams none."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Sink(Protocol[T]):
    """Where a reflector delivers; all synchronous."""

    def replace(self, entries: Mapping[str, Entry[T]], keep: frozenset[str]) -> None:
        """All objects there are; `keep` exist but could not be decoded."""
        ...

    def put(self, entry: Entry[T]) -> None:
        """An object is new or has changed."""
        ...

    def remove(self, obj: T) -> None:
        """An object is gone."""
        ...

    def absent(self, why: str) -> None:
        """The server has no such resource, or shows it to nobody like us: there are no objects."""
        ...

    def reached(self, version: int) -> None:
        """Everything up to this resourceVersion was delivered; also a sign of life."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How a reflector paces itself, in seconds.

    `silence` is how long a watch may show nothing: kube-apiserver sends a bookmark to each watch
    every 60 to 75 s, so a longer silence is a dead connection. `session` is how long the server
    is asked to keep one watch open. After `patience` failures in a row it lists again. `absent` is
    the longest time until it is asked again for an optional resource that it does not have, and
    how long it must lack one whose objects were seen before they count as gone.
    """

    silence: float = 90.0
    session: int = 480
    backoff: Backoff = field(default_factory=lambda: Backoff(0.5, 30.0))
    settled: float = 10.0
    patience: int = 5
    absent: float = 30.0


class _Event(Struct):
    """The object is decoded second: a bookmark's does not fit the resource's type."""

    type: str
    object: Raw


class _Restart(StrEnum):
    ENDED = "ended"
    GONE = "gone"
    STALLED = "stalled"
    ERROR = "error"
    ABSENT = "absent"


class Reflector(Generic[T]):
    """Keeps a sink equal to what the API server has for one selector.

    `kept` gives what is kept of an object that has come, with so many bytes of JSON.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        selector: Selector,
        sink: Sink[T],
        *,
        keep_raw: bool = False,
        kept: Callable[[Entry[T], int], Entry[T]] | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._selector = selector
        self._sink = sink
        self._keep_raw = keep_raw
        self._kept = kept
        self._pace = pace if pace is not None else Pace()
        self._decoder = msgspec.json.Decoder(resource.type)
        self._streaming = True
        self._version = ""
        """Where to go on; empty until a whole list was delivered."""
        self._seen = False
        """Whether objects were delivered, and not counted as gone since."""
        self.tried_at = client.clock.monotonic()
        """When the server was last asked, whether it answered or not."""
        self._lacked_since: float | None = None
        """Since when the server answers that it has no such resource."""

    async def run(self) -> None:
        """Never returns; only cancelling ends it."""
        failures = absences = 0
        clock = self._client.clock
        while True:
            started = self.tried_at = clock.monotonic()
            reason = await self._session()
            if reason is _Restart.ABSENT:
                # Definitions are often installed soon after the operator, and rarely later.
                failures, absences = 0, absences + 1
                await clock.sleep(min(self._pace.absent, self._pace.backoff.delay(absences)))
                continue
            absences = 0
            if clock.monotonic() - started >= self._pace.settled:
                failures = 0
            if reason is not _Restart.ENDED or clock.monotonic() - started < 1.0:
                failures += 1
            if failures >= self._pace.patience:
                # Perhaps the version is one the server cannot serve, as after a restore of etcd.
                self._version = ""
            self._client.metrics.watch_restarts.labels(self._resource.plural, reason).inc()
            await clock.sleep(self._pace.backoff.delay(failures))

    async def _session(self) -> _Restart:
        """List if there is nothing to go on from, then follow until something ends it."""
        try:
            if not self._version and not self._streaming:
                await self._paged_list()
            await self._follow()
        except GoneError as error:
            self._version = ""
            self._warn(_Restart.GONE, error)
            return _Restart.GONE
        except TimeoutError as error:
            if not self._version:
                # Perhaps a server that takes the parameter and never ends the initial events.
                self._streaming = not self._streaming
            self._warn(_Restart.STALLED, error)
            return _Restart.STALLED
        except (KubeError, msgspec.DecodeError) as error:
            if self._is_absent(error):
                self._version, self._seen = "", False
                self._sink.absent(self._missing(error))
                return _Restart.ABSENT
            self._warn(_Restart.ERROR, error)
            return _Restart.ERROR
        return _Restart.ENDED

    def _is_absent(self, error: Exception) -> bool:
        """Whether there are no objects, because there is no such resource.

        Of one whose objects were seen this is believed once it has lasted: one server of several
        may not serve the definition yet.
        """
        resource = self._resource
        if isinstance(error, ForbiddenError):
            return resource.optional and resource.forbidden_is_absent
        if not resource.optional or not isinstance(error, NotFoundError):
            return False
        now = self._client.clock.monotonic()
        if self._lacked_since is None:
            self._lacked_since = now
        return not self._seen or now - self._lacked_since >= self._pace.absent

    def _missing(self, error: KubeError | msgspec.DecodeError) -> str:
        """Why there is no such resource; a server without the kind answers in plain text."""
        if isinstance(error, NotFoundError):
            return f"the API server does not serve {self._resource.api_version}"
        return str(error).strip()

    def _warn(self, reason: _Restart, error: Exception) -> None:
        log.warning(
            "watch interrupted",
            resource=self._resource.plural,
            namespace=self._selector.namespace,
            reason=str(reason),
            error=str(error),
        )

    async def _paged_list(self) -> None:
        """Read the list page by page, so that large objects are not all in memory at one time.

        One that outlives its continue token is read once more in one piece, as client-go does.
        """
        pages, of = self._client.pages, (self._resource, self._selector)
        try:
            found = await self._read(pages(*of, page_bytes=PAGE_BYTES if self._kept else 0))
        except GoneError:
            found = await self._read(pages(*of, limit=0))
        self._replace(*found)

    async def _read(self, pages: AsyncIterator[Page]) -> tuple[_Gathered[T], str]:
        gathered, version = _Gathered[T]({}, set()), ""
        async for page in pages:
            for item in page.items or ():
                self._gather(gathered, item)
            version = page.metadata.resource_version
        return gathered, version

    async def _follow(self) -> None:
        params = {"timeoutSeconds": str(self._pace.session)}
        if self._version:
            params["resourceVersion"] = self._version
        else:
            # No resourceVersion: the list is as fresh as etcd, never of a lagging server's past.
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        watch = self._client.watch(self._resource, self._selector, params)
        try:
            async with deadline(self._client.clock, self._pace.silence) as alive, watch as stream:
                await self._deliver(stream.lines(), alive)
        except (InvalidError, BadRequestError):
            if self._version or not self._streaming:
                raise
            self._streaming = False

    async def _deliver(self, lines: AsyncIterator[bytes], watchdog: Watchdog) -> None:
        # Until the bookmark that ends the initial events they come in any order of versions:
        # none of them may be delivered or taken as a place to go on from.
        initial = None if self._version else _Gathered[T]({}, set())
        counter = self._client.metrics.watch_events.labels(self._resource.plural)
        async for line in lines:
            if not line:
                continue
            watchdog.alive()
            counter.inc()
            event = decode(line, _Event)
            if event.type == "ERROR":
                raise status_error(msgspec.json.decode(event.object, type=Status))
            if event.type == "BOOKMARK":
                meta = msgspec.json.decode(event.object, type=KubeObject).metadata
                if initial is None:
                    self._reached(meta.resource_version)
                elif meta.annotations.get(INITIAL_END) == "true":
                    self._replace(initial, meta.resource_version)
                    initial = None
            elif initial is not None:
                self._gather(initial, event.object, gone=event.type == "DELETED")
            else:
                self._change(event)
        if initial is not None:
            raise UnreachableError("watch ended within its initial events")

    def _change(self, event: _Event) -> None:
        entry = self._decode(event.object, gone=event.type == "DELETED")
        if isinstance(entry, KubeObject):
            self._reached(entry.metadata.resource_version)
            return
        if event.type == "DELETED":
            self._sink.remove(entry.obj)
        else:
            self._sink.put(entry)
        self._reached(entry.obj.metadata.resource_version)

    def _reached(self, version: str) -> None:
        self._version = version
        self._seen, self._lacked_since = True, None
        self._sink.reached(version_of(version))

    def _replace(self, gathered: _Gathered[T], version: str) -> None:
        self._sink.replace(gathered.entries, frozenset(gathered.undecodable))
        self._reached(version)

    def _gather(self, gathered: _Gathered[T], raw: Raw, *, gone: bool = False) -> None:
        entry = self._decode(raw, gone=gone)
        if isinstance(entry, KubeObject):
            gathered.undecodable.add(entry.metadata.key)
        elif gone:
            gathered.entries.pop(entry.obj.metadata.key, None)
        else:
            gathered.entries[entry.obj.metadata.key] = entry

    def _decode(self, raw: Raw, *, gone: bool) -> Entry[T] | KubeObject:
        """The entry, or only the identity of an object that does not fit its type."""
        try:
            try:
                obj = self._decoder.decode(raw)
            except RecursionError:
                # What is left of it is still nested too deeply to be valid, and is reported so.
                raw = msgspec.Raw(shallow(bytes(raw)))
                obj = self._decoder.decode(raw)
        except (msgspec.ValidationError, UnicodeDecodeError) as error:
            bare = decode(raw, KubeObject)
            self._client.metrics.undecodable.labels(self._resource.plural).inc()
            log.warning(
                "object does not fit its type; its last known state stands",
                resource=self._resource.plural,
                key=bare.metadata.key,
                error=str(error),
            )
            return bare
        entry = Entry(obj, bytes(raw) if self._keep_raw else None)
        if self._kept is None or gone:
            return entry
        return self._kept(entry, memoryview(raw).nbytes)


@dataclass(slots=True)
class _Gathered(Generic[T]):
    """The initial events so far."""

    entries: dict[str, Entry[T]]
    undecodable: set[str]
