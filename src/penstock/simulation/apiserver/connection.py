"""One client's way to the simulated API server, with all that may be wrong with it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import msgspec

from penstock.kube.cache.reflector import INITIAL_END
from penstock.kube.client.errors import UnreachableError
from penstock.kube.client.transport import Request, Response
from penstock.simulation.apiserver.address import parse
from penstock.simulation.apiserver.selectors import matcher
from penstock.simulation.apiserver.server import ApiServer
from penstock.simulation.apiserver.status import StatusError, failure, status_body
from penstock.simulation.apiserver.store import Change, line

BOOKMARK_S = 60.0
"""How often kube-apiserver sends a bookmark to a watch."""


@dataclass
class Trouble:
    """What happens to the next `times` requests that fit.

    With `status` they fail; `cut` ends the connection before anything was done, `lost` does
    it and cuts the answer, `slow` waits that many seconds first. `late` lets a request arrive so
    many seconds after it was sent, also when its sender has given up or died meanwhile, and cuts
    the answer. A watch counts as a request.
    """

    status: int = 0
    retry_after: float | None = None
    cut: bool = False
    lost: bool = False
    slow: float = 0.0
    late: float = 0.0
    times: int = 1
    when: Callable[[Request], bool] = lambda _: True


sent_at: ContextVar[float] = ContextVar("sent_at", default=0.0)
"""When the request that is handled now was sent, in seconds of the running loop."""


class Connection:
    """A `Transport` to `server` for one client, who is called `user`.

    `latency` gives the seconds that the next request takes, `lag` those until an event of a watch
    arrives; the order of one watch's events is kept. `sending` is called with each write when it
    is sent, `wrote` after each that was done, before its answer goes out.
    """

    def __init__(
        self,
        server: ApiServer,
        user: str,
        *,
        latency: Callable[[], float] = lambda: 0.001,
        lag: Callable[[], float] = lambda: 0.001,
        sending: Callable[[Request], None] | None = None,
        wrote: Callable[[Request, Response], None] | None = None,
    ) -> None:
        self.server = server
        self.user = user
        self.troubles: list[Trouble] = []
        self.dead = False
        """Whether nothing gets through any more, in either direction."""
        self.duplicate = False
        """Whether each event comes twice."""
        self._latency = latency
        self._lag = lag
        self._sending = sending
        self._wrote = wrote
        self._watches: list[_Watch] = []
        self._shown: dict[str, float] = {}
        self._delayed = ""

    def trouble(self, *troubles: Trouble) -> None:
        """Have requests to come go wrong."""
        self.troubles += troubles

    def delay_events(self, plural: str = "*") -> None:
        """Deliver no event of that resource until `release`: the client's view grows stale."""
        self._delayed = plural

    def release_events(self) -> None:
        """Deliver the delayed events, and continue."""
        self._delayed = ""
        for watch in self._watches:
            watch.flush()

    def kill(self) -> None:
        """Let nothing through any more: the client has crashed, or its network is gone."""
        self.dead = True
        self.cut()

    def cut(self) -> None:
        """Break the connections of all watches; what was under way is lost."""
        for watch in self._watches:
            watch.end(cut=True)

    def expire(self) -> None:
        """End all watches with 410 Gone, and answer so to who goes on from before."""
        self.server.store.compact()
        for watch in self._watches:
            watch.deliver(line(b"ERROR", status_body(410, "too old resource version")))
            watch.end()

    async def send(self, request: Request) -> Response:
        """Answer of whatever status. Raises UnreachableError."""
        loop = asyncio.get_running_loop()
        sent_at.set(loop.time())
        if request.method != "GET" and self._sending is not None:
            self._sending(request)
        trouble = await self._arrive(request)
        if trouble is not None and trouble.status:
            return failure(trouble.status, "made to fail", retry_after=trouble.retry_after)
        if trouble is not None and trouble.late:
            loop.call_later(trouble.late, self._handle, request)
            await asyncio.sleep(trouble.late)
            raise UnreachableError(f"{request.method} {request.path}: no answer")
        answer = self._handle(request)
        if self.dead or (trouble is not None and trouble.lost):
            raise UnreachableError(f"{request.method} {request.path}: cut before the answer")
        return answer

    def _handle(self, request: Request) -> Response:
        answer = self.server.handle(request, self.user)
        if request.method != "GET" and answer.status < 300 and self._wrote is not None:
            self._wrote(request, answer)
        return answer

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[_Stream]:
        """Open a watch. Raises UnreachableError."""
        trouble = await self._arrive(request)
        if trouble is not None and trouble.status:
            yield _Stream(failure(trouble.status, "made to fail"), None)
            return
        try:
            watch = _Watch(self, request)
        except StatusError as refused:
            yield _Stream(refused.response, None)
            return
        self._watches.append(watch)
        try:
            yield _Stream(Response(200), watch)
        finally:
            self._shown[watch.resource] = watch.shown
            self._watches.remove(watch)
            watch.close()

    async def close(self) -> None:
        """Nothing to give back."""

    def is_delaying_events(self, resource: str) -> bool:
        """Whether events of a resource are delayed now."""
        return self._delayed in {"*", resource.rpartition("/")[2]}

    def lag(self) -> float:
        """Seconds until the next event arrives."""
        return self._lag()

    def shown(self, resource: str) -> float:
        """Up to when the client was shown each change of a resource, in the loop's seconds."""
        watches = (one.shown for one in self._watches if one.resource == resource)
        return min(watches, default=self._shown.get(resource, float("-inf")))

    async def _arrive(self, request: Request) -> Trouble | None:
        await asyncio.sleep(self._latency())
        trouble = next((one for one in self.troubles if one.when(request)), None)
        if trouble is not None:
            trouble.times -= 1
            if trouble.times <= 0:
                self.troubles.remove(trouble)
            if trouble.slow:
                await asyncio.sleep(trouble.slow)
        if self.dead or (trouble is not None and trouble.cut):
            raise UnreachableError(f"{request.method} {request.path}: connection refused")
        return trouble


class _Watch:
    """One watch: from the server's store through the connection into the client's queue."""

    def __init__(self, connection: Connection, request: Request) -> None:
        self._connection = connection
        self._store = connection.server.store
        self._address = parse(request.path)
        connection.server.check(self._address)
        self._matches = matcher(
            request.params.get("labelSelector", ""), request.params.get("fieldSelector", "")
        )
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._coming: deque[tuple[float, float, bytes | None]] = deque()
        """When each line is due, the time of its change, and the line."""
        self._begins: float | None = connection.shown(self._address.resource)
        """When that may have happened with which it begins; None when it has begun."""
        self._ended_at = float("inf")
        self._timer: asyncio.TimerHandle | None = None
        self._cut = False
        version = request.params.get("resourceVersion")
        if version:
            if int(version) < self._store.oldest:
                raise StatusError(410, "too old resource version")
            for change in self._store.since(self._address.resource, int(version)):
                self._changed(change)
        else:
            self._initial(request)
        self._begins = None
        self._store.listeners.append(self._changed)
        self._bookmark = self._loop.call_later(BOOKMARK_S, self._mark)
        life = float(request.params.get("timeoutSeconds", "1800"))
        self._life = self._loop.call_later(life, self.end)

    @property
    def resource(self) -> str:
        """What is watched."""
        return self._address.resource

    @property
    def shown(self) -> float:
        """Up to when the client was shown each change, in the loop's seconds."""
        return min(self._ended_at, self._coming[0][1] if self._coming else self._loop.time())

    def deliver(self, text: bytes | None) -> None:
        """Put a line on its way to the client; None is the end."""
        lag = self._connection.lag()
        due = self._loop.time() + lag
        if self._coming:
            due = max(due, self._coming[-1][0])
        elif lag <= 0 and not self._is_delayed():
            self._lines.put_nowait(text)
            return
        happened = self._loop.time() if self._begins is None else self._begins
        self._coming.append((due, happened, text))
        self._arm()

    def flush(self) -> None:
        """Hand over what is due."""
        self._timer = None
        while self._coming and not self._is_delayed() and self._coming[0][0] <= self._loop.time():
            self._lines.put_nowait(self._coming.popleft()[2])
        self._arm()

    def end(self, *, cut: bool = False) -> None:
        """End the watch, in order or by a cut."""
        self._ended_at = min(self._ended_at, self.shown if cut else self._loop.time())
        if cut:
            self._cut = True
            self._coming.clear()
            self._lines.put_nowait(None)
        else:
            self.deliver(None)

    def close(self) -> None:
        """The client left."""
        if self._changed in self._store.listeners:
            self._store.listeners.remove(self._changed)
        for timer in (self._timer, self._bookmark, self._life):
            if timer is not None:
                timer.cancel()

    async def lines(self) -> AsyncIterator[bytes]:
        """What arrives. Raises UnreachableError when the watch was cut."""
        while True:
            text = await self._lines.get()
            if self._cut or self._connection.dead:
                raise UnreachableError("watch cut")
            if text is None:
                return
            yield text

    def _is_delayed(self) -> bool:
        return self._connection.is_delaying_events(self._address.resource)

    def _arm(self) -> None:
        if self._timer is None and self._coming and not self._is_delayed():
            self._timer = self._loop.call_at(self._coming[0][0], self.flush)

    def _initial(self, request: Request) -> None:
        selectors = {k: v for k, v in request.params.items() if k.endswith("Selector")}
        bare = Request("GET", request.path, selectors)
        for stored in self._connection.server.list_page(self._address, bare)[0]:
            self.deliver(line(b"ADDED", stored.raw))
        self._mark(initial=True)

    def _mark(self, *, initial: bool = False) -> None:
        # A real bookmark does not fit the type of its resource: containers are null.
        meta: dict[str, object] = {
            "resourceVersion": str(self._store.version),
            "creationTimestamp": None,
        }
        if initial:
            meta["annotations"] = {INITIAL_END: "true"}
        else:
            self._bookmark = self._loop.call_later(BOOKMARK_S, self._mark)
        self.deliver(line(b"BOOKMARK", msgspec.json.encode({"metadata": meta, "spec": None})))

    def _changed(self, change: Change) -> None:
        if change.resource != self._address.resource:
            return
        text = change.event(self._address.namespace, self._matches)
        if text is not None:
            self.deliver(text)
            if self._connection.duplicate:
                self.deliver(text)


class _Stream:
    """What the client sees of a watch."""

    def __init__(self, response: Response, watch: _Watch | None) -> None:
        self._response = response
        self._watch = watch

    @property
    def response(self) -> Response:
        return self._response

    async def lines(self) -> AsyncIterator[bytes]:
        if self._watch is not None:
            async for text in self._watch.lines():
                yield text
