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


def bounded(largest: Callable[[], int]) -> Exchange:
    """An `exchange` whose replies are no larger than `largest` returns at that time."""

    async def bounded_exchange(
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        fence: Callable[[], None] = unfenced,
        /,
    ) -> Answer:
        return await exchange(url, method, headers, body, fence, largest=largest())

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
    largest: int = LARGEST,
    feed: Callable[[bytes], None] | None = None,
) -> Answer:
    """Send one request and read the reply. It has no time limit: cancel it.

    With `feed` the body goes there piece by piece, and that of the Answer is empty.

    `fence` is called when the connection is made, which may take long, and right before anything
    is sent; if it raises, nothing is sent.

    Raises OSError when the connection cannot be made or breaks, EOFError when it ends too soon,
    HttpFormatError when the reply is not HTTP, or its body has more bytes than `largest`.
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
    reader, writer = await asyncio.open_connection(
        parts.hostname, port, ssl=secure or None, limit=LARGEST_HEAD
    )
    try:
        fence()
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        await writer.drain()
        return await _read(reader, largest, feed)
    finally:
        # The reply is complete, and a graceful close would wait for the other side.
        writer.transport.abort()


async def _read(
    reader: asyncio.StreamReader, largest: int, feed: Callable[[bytes], None] | None
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
        body = await _chunks(reader, largest)
    elif not length:
        body = await _rest(reader, largest)
    elif not _LENGTH.fullmatch(length):
        raise HttpFormatError("the reply's Content-Length is no number")
    elif int(length) > largest:
        raise _too_large(largest)
    elif feed is not None:
        await _pieces(reader, int(length), feed)
        body = b""
    else:
        body = await reader.readexactly(int(length))
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


async def _chunks(reader: asyncio.StreamReader, largest: int) -> bytes:
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
        if len(body) + size > largest:
            raise _too_large(largest)
        body += await reader.readexactly(size)
        if await reader.readexactly(2) != b"\r\n":
            raise HttpFormatError("the reply's chunk is longer than its size")


async def _rest(reader: asyncio.StreamReader, largest: int) -> bytes:
    """All up to the end of the connection."""
    body = bytearray()
    while piece := await reader.read(_PIECE):
        body += piece
        if len(body) > largest:
            raise _too_large(largest)
    return bytes(body)


def _too_large(largest: int) -> HttpFormatError:
    return HttpFormatError(f"the reply has more than {largest // 2**20} MiB")
