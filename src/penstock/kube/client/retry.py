"""One request, as often as it takes: bounded in number, in time and in flight."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from penstock.kube.client.backoff import Backoff
from penstock.kube.client.clock import Clock, deadline
from penstock.kube.client.errors import (
    ApiError,
    KubeError,
    NotLeaderError,
    ServerError,
    TooManyRequestsError,
    UnreachableError,
    api_error,
)
from penstock.kube.client.metrics import Metrics
from penstock.kube.client.transport import Request, Response, Stream, Transport

READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True, slots=True)
class Call:
    """A request and how it may be treated.

    `verb` and `resource` are the words of RBAC and metrics. `repeat` means that the request is
    idempotent, so it may be sent again when it is unknown whether it arrived. `timeout` are
    seconds for one attempt.
    """

    verb: str
    resource: str
    request: Request
    repeat: bool = True
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how patiently. `longest` bounds what a Retry-After can ask for, in seconds."""

    attempts: int = 4
    backoff: Backoff = field(default_factory=lambda: Backoff(0.2, 5.0))
    longest: float = 30.0


class Rest:
    """Sends calls through a transport with a limit on what is in flight."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        metrics: Metrics,
        *,
        concurrency: int = 32,
        retry: Retry | None = None,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._metrics = metrics
        self._slots = asyncio.Semaphore(concurrency)
        self._retry = retry if retry is not None else Retry()

    async def send(self, call: Call, guard: Callable[[], bool] | None = None) -> Response:
        """The first good answer. Raises KubeError.

        `guard` is called before each attempt of a write; NotLeaderError is raised if it is false.
        """
        attempt = 0
        while True:
            attempt += 1
            if guard is not None and call.verb not in READS and not guard():
                raise NotLeaderError(f"{call.verb} {call.request.path}: not the leader")
            try:
                return await self._once(call)
            except (ApiError, UnreachableError) as error:
                if attempt >= self._retry.attempts or not _again(call, error):
                    raise
                asked = error.retry_after if isinstance(error, ApiError) else None
                delay = self._retry.backoff.delay(attempt)
                await self._clock.sleep(min(max(delay, asked or 0.0), self._retry.longest))

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[Stream]:
        """Open a watch, once. Raises KubeError; a watch takes no slot of those in flight."""
        async with AsyncExitStack() as stack:
            code = 0
            try:
                async with deadline(self._clock, call.timeout):
                    stream = await stack.enter_async_context(self._transport.stream(call.request))
                code = stream.response.status
            except TimeoutError as error:
                raise UnreachableError(f"{call.verb} {call.request.path}: no answer") from error
            finally:
                self._metrics.sent(call.verb, call.resource, code)
            if code >= 300:
                raise api_error(code, stream.response.body, stream.response.retry_after)
            yield stream

    async def _once(self, call: Call) -> Response:
        async with self._slots:
            started = self._clock.monotonic()
            code = 0
            try:
                async with deadline(self._clock, call.timeout):
                    response = await self._transport.send(call.request)
                code = response.status
            except TimeoutError as error:
                raise UnreachableError(
                    f"{call.request.method} {call.request.path}: no answer in {call.timeout:g} s"
                ) from error
            finally:
                taken = self._clock.monotonic() - started
                self._metrics.sent(call.verb, call.resource, code, taken)
        if code >= 300:
            raise api_error(code, response.body, response.retry_after)
        return response


def _again(call: Call, error: KubeError) -> bool:
    """Whether a failed call may be sent again.

    The server sends 429 before it does anything, so every repeatable call may be sent again. An
    eviction's 429 means a PodDisruptionBudget and is the caller's to handle (`repeat` is False).
    """
    return call.repeat and isinstance(error, (TooManyRequestsError, ServerError, UnreachableError))
