"""One HTTP/1.1 request on a connection of its own.

slurmrestd 26.05 answers every failed request twice: the JSON reply, announced with its length, is
followed on the same connection by a second, plain-text reply. Strict clients (aiohttp's parser is
one) refuse both, and with them Slurm's own words. Here the announced length is read and the rest
is left. At a request or two per second, keeping connections alive would gain nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

LARGEST_HEAD = 65536


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
        """Whether it says that its body is JSON."""
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


def unfenced() -> None:
    """The fence of a request that anybody may send."""


async def exchange(
    url: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    fence: Callable[[], None] = unfenced,
) -> Answer:
    """Send one request and read the reply. It has no time limit: cancel it.

    `fence` is called when the connection is made, which may take long, and right before anything
    is sent; if it raises, nothing is sent.

    Raises OSError when the connection cannot be made or breaks, EOFError when it ends too soon,
    HttpFormatError when the reply is not HTTP.
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
        return await _read(reader)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Answer:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError as error:
        raise HttpFormatError("the reply's header is too long") from error
    first, *lines = head.rstrip("\r\n").split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not status.isdigit():
        raise HttpFormatError("the reply is not HTTP/1")
    fields = {
        name.strip().lower(): text.strip()
        for name, _, text in (line.partition(":") for line in lines)
    }
    length = fields.get("content-length", "")
    if status in {"204", "304"}:
        body = b""
    elif fields.get("transfer-encoding", "").lower() == "chunked":
        body = await _chunks(reader)
    elif length.isdigit():
        body = await reader.readexactly(int(length))
    else:
        body = await reader.read()
    return Answer(int(status), fields.get("content-type", ""), body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    while True:
        line = await reader.readuntil(b"\r\n")
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError as error:
            raise HttpFormatError("the reply's chunk has no size") from error
        if size == 0:
            return b"".join(parts)
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
