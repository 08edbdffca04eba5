"""One HTTP/1.1 request on a connection of its own.

slurmrestd 26.05 answers every failed request twice: the JSON reply, announced with its length, is
followed on the same connection by a second, plain-text reply. Strict clients (aiohttp's parser is
one) reject both, and with them Slurm's own words. Here the announced length is read and the rest
is left. At a request or two per second, keeping connections alive would gain nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from penstock.slurm.rest.connection import AddressCache, Streams, connect

LARGEST_HEAD = 65536
LARGEST = 64 * 2**20
"""Bytes of a reply's body, for a cluster of few nodes: a node has about 5 kB, a job 10."""
LARGEST_PER_NODE = 32 * 2**10
"""Bytes more for each node, for its record and the jobs that wait for it."""

_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")
_LENGTH = re.compile(r"[0-9]{1,12}")
_STATUS = re.compile(r"[1-5][0-9]{2}")
_PIECE = 65536


class HttpFormatError(ValueError):
    """The other side does not speak HTTP/1."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole reply."""

    status: int
    content_type: str
    body: bytes

    @property
    def json(self) -> bool:
        """Whether its Content-Type is JSON."""
        return self.content_type.partition(";")[0].strip().lower() == "application/json"


@dataclass(frozen=True, slots=True)
class SizeLimit:
    """How many bytes a reply's body may have: `most`, asked only beyond `least`.

    To add up the nodes of all clusters for each reply would cost more than to read it.
    """

    most: Callable[[], int]
    least: int = 0

    def check(self, size: int) -> None:
        """Raise HttpFormatError for a body of more bytes."""
        if size > self.least and size > (most := self.most()):
            raise HttpFormatError(f"the reply has more than {most // 2**20} MiB")


_LIMIT = SizeLimit(lambda: LARGEST, LARGEST)


class Connect(Protocol):
    """How a connection is made: `connect`, or that of an AddressCache."""

    async def __call__(self, host: str, port: int, *, secure: bool, limit: int) -> Streams:
        """Connect. `limit` is of the bytes of a header. Raises OSError."""
        ...


class Exchange(Protocol):
    """How a request gets its answer: `exchange`, or a simulated slurmrestd."""

    async def __call__(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        fence: Callable[[], None],
        /,
    ) -> Answer:
        """Send one request and read the reply. Raises what `exchange` does."""
        ...


def largest_reply(nodes: int) -> int:
    """How many bytes a reply may have in clusters of so many nodes."""
    return LARGEST + nodes * LARGEST_PER_NODE


def bounded(most: Callable[[], int], least: int = 0) -> Exchange:
    """An `exchange` with a SizeLimit of its own, which keeps addresses for a time."""
    limit, addresses = SizeLimit(most, least), AddressCache()

    async def bounded_exchange(
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        fence: Callable[[], None] = unfenced,
        /,
    ) -> Answer:
        return await exchange(
            url, method, headers, body, fence, limit=limit, connect=addresses.connect
        )

    return bounded_exchange


def unfenced() -> None:
    """The fence of a request that anybody may send."""


async def exchange(
    url: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    fence: Callable[[], None] = unfenced,
    *,
    limit: SizeLimit = _LIMIT,
    feed: Callable[[bytes], None] | None = None,
    connect: Connect = connect,
) -> Answer:
    """Send one request and read the reply. It has no time limit: cancel it.

    With `feed` the body goes there piece by piece, and that of the Answer is empty.

    `fence` is called when the connection is made, which may take long, and right before anything
    is sent; if it raises, nothing is sent.

    Raises OSError when the connection cannot be made or breaks, EOFError when it ends too soon,
    HttpFormatError when the reply is not HTTP, or its body is larger than `limit`.
    """
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    fields = {"Host": parts.netloc, "Accept": "application/json", **(headers or {})}
    if body or method in {"POST", "PUT"}:
        fields["Content-Length"] = str(len(body))
    head = [f"{method} {target} HTTP/1.1", *(f"{name}: {text}" for name, text in fields.items())]
    if any("\r" in line or "\n" in line for line in head):
        raise HttpFormatError("line break in a request's header")
    reader, writer = await connect(parts.hostname or "", port, secure=secure, limit=LARGEST_HEAD)
    try:
        fence()
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        await writer.drain()
        return await _read(reader, limit, feed)
    finally:
        # The reply is complete, and a graceful close would wait for the other side.
        writer.transport.abort()


async def _read(
    reader: asyncio.StreamReader, limit: SizeLimit, feed: Callable[[bytes], None] | None
) -> Answer:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError as error:
        raise HttpFormatError("the reply's header is too long") from error
    first, *lines = head.rstrip("\r\n").split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not _STATUS.fullmatch(status):
        raise HttpFormatError("the reply is not HTTP/1")
    fields = {
        name.strip().lower(): text.strip()
        for name, _, text in (line.partition(":") for line in lines)
    }
    length = fields.get("content-length", "")
    if status in {"204", "304"}:
        body = b""
    elif fields.get("transfer-encoding", "").lower() == "chunked":
        body = await _chunks(reader, limit)
    elif not length:
        body = await _rest(reader, limit)
    elif not _LENGTH.fullmatch(length):
        raise HttpFormatError("the reply's Content-Length is no number")
    else:
        size = int(length)
        limit.check(size)
        if feed is not None:
            await _pieces(reader, size, feed)
            body = b""
        else:
            body = await reader.readexactly(size)
    if feed is not None and body:
        # slurmrestd announces the length of each reply: these come from a proxy.
        feed(body)
        body = b""
    return Answer(int(status), fields.get("content-type", ""), body)


async def _pieces(reader: asyncio.StreamReader, length: int, feed: Callable[[bytes], None]) -> None:
    """Pass a body on as it arrives. Raises IncompleteReadError, an EOFError."""
    left = length
    while left:
        piece = await reader.read(min(left, _PIECE))
        if not piece:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(piece)
        feed(piece)


async def _chunks(reader: asyncio.StreamReader, limit: SizeLimit) -> bytes:
    # One growing buffer: a list of chunks of a byte each would take fifty times their size.
    body = bytearray()
    while True:
        try:
            line = await reader.readuntil(b"\r\n")
        except asyncio.LimitOverrunError as error:
            raise HttpFormatError("the line of the reply's chunk is too long") from error
        written = line.partition(b";")[0].strip()
        if not _CHUNK_SIZE.fullmatch(written):
            raise HttpFormatError("the reply's chunk has no size")
        size = int(written, 16)
        if size == 0:
            return bytes(body)
        limit.check(len(body) + size)
        body += await reader.readexactly(size)
        if await reader.readexactly(2) != b"\r\n":
            raise HttpFormatError("the reply's chunk is longer than its size")


async def _rest(reader: asyncio.StreamReader, limit: SizeLimit) -> bytes:
    """All up to the end of the connection."""
    body = bytearray()
    while piece := await reader.read(_PIECE):
        body += piece
        limit.check(len(body))
    return bytes(body)
