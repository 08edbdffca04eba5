"""HTTP to the API server, behind a Protocol that a simulated server can stand in for."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from weakref import WeakSet

import aiohttp
from yarl import URL

from penstock.kube.client.config import Config
from penstock.kube.client.errors import UnreachableError

GOODBYE = 1.0
"""Seconds that connections get to be gone once they are closed; they take milliseconds."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; `path` starts with a slash and is relative to the server."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """More of them; those of the connection itself win."""


@dataclass(frozen=True, slots=True)
class Response:
    """The answer; `retry_after` are the seconds of its Retry-After header."""

    status: int
    body: bytes = b""
    retry_after: float | None = None


class Stream(Protocol):
    """An answer that arrives line by line."""

    @property
    def response(self) -> Response:
        """Status of the answer; with its body only when the status is an error."""
        ...

    def lines(self) -> AsyncIterator[bytes]:
        """Complete lines without their end. Raises UnreachableError when the stream is cut."""
        ...


class Transport(Protocol):
    """Sends requests. Time-outs and retries are its caller's."""

    async def send(self, request: Request) -> Response:
        """Answer of whatever status. Raises UnreachableError when there is none."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Open a watch. Raises UnreachableError when there is no answer."""
        ...

    async def close(self) -> None:
        """Give the connections back."""
        ...


class HttpTransport:
    """The real thing, on aiohttp: kept-alive HTTP/1.1 connections over TLS."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._base = URL(config.server.rstrip("/"))
        self._session: aiohttp.ClientSession | None = None
        self._sockets = WeakSet[socket.socket]()

    async def send(self, request: Request) -> Response:
        """Send a request; after 401 once more, with fresh credentials."""
        try:
            async with await self._open(request) as answer:
                return Response(answer.status, await answer.read(), _retry_after(answer))
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(f"{request.method} {request.path}: {error!r}") from error

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[Stream]:
        """Open a watch."""
        try:
            answer = await self._open(request)
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(f"watch {request.path}: {error!r}") from error
        try:
            yield _HttpStream(answer, await _error_body(answer))
        finally:
            # An unfinished watch cannot be reused: close it instead of reading on.
            answer.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE):
                    await self._gone()

    async def _open(self, request: Request) -> aiohttp.ClientResponse:
        answer = await self._once(request)
        if answer.status == 401:
            answer.close()
            self._config.credentials.expire()
            answer = await self._once(request)
        return answer

    async def _once(self, request: Request) -> aiohttp.ClientResponse:
        access = await self._config.credentials.access()
        headers = {**request.headers, "Accept": "application/json", **access.headers}
        if request.body:
            headers["Content-Type"] = request.content_type
        return await self._sessions().request(
            request.method,
            self._base.joinpath(request.path.lstrip("/"), encoded=True),
            params=request.params or None,
            data=request.body or None,
            headers=headers,
            ssl=access.ssl if access.ssl is not None else True,
            server_hostname=self._config.tls_server_name,
            allow_redirects=False,
        )

    async def _gone(self) -> None:
        # A TLS handshake that is cancelled midway ends only after the session reports that it is
        # closed. An event loop that ended before would leave its socket open.
        while any(one.fileno() >= 0 for one in self._sockets):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.005)

    def _socket(self, address: tuple[Any, ...]) -> socket.socket:
        made = socket.socket(*address[:3])
        self._sockets.add(made)
        return made

    def _sessions(self) -> aiohttp.ClientSession:
        if self._session is None:
            # The client bounds what is in flight; watches come on top of it and never wait.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=60.0, socket_factory=self._socket
                ),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
                headers={"User-Agent": "penstock"},
                auto_decompress=True,
            )
        return self._session


class _HttpStream:
    def __init__(self, answer: aiohttp.ClientResponse, body: bytes) -> None:
        self._answer = answer
        self._response = Response(answer.status, body, _retry_after(answer))

    @property
    def response(self) -> Response:
        return self._response

    async def lines(self) -> AsyncIterator[bytes]:
        # Not readline(): it fails on lines longer than its buffer, and a pod may be one.
        parts: list[bytes] = []
        try:
            async for chunk in self._answer.content.iter_any():
                *whole, rest = chunk.split(b"\n")
                for line in whole:
                    yield b"".join((*parts, line)) if parts else line
                    parts.clear()
                if rest:
                    parts.append(rest)
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(f"watch cut: {error!r}") from error


async def _error_body(answer: aiohttp.ClientResponse) -> bytes:
    if answer.status < 300:
        return b""
    try:
        return await answer.read()
    except (aiohttp.ClientError, OSError):
        return b""


def _retry_after(answer: aiohttp.ClientResponse) -> float | None:
    text = answer.headers.get("Retry-After", "")
    # The other form of the header, a date, is never sent by kube-apiserver.
    return float(text) if text.isdecimal() else None
