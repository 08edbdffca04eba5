"""Libraries beside the code of ours that they would replace: `python -m bench.libraries`.

They are no dependencies: `pip install h11 pyjwt` in the environment first. Each pair is measured in
turn, in CPU time of this process; the server runs in another one.
"""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import socket
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from penstock.slurm.auth import jwt
from penstock.slurm.rest.http import exchange

ROUNDS = 7
SMALL, LARGE = b" " * 2_000, b"x" * 25 * 2**20
"""Bodies: of a call that changes something, and of the nodes of a cluster of 5,000."""
KEY = bytes(range(32))


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    body = LARGE if b"/large" in await reader.readuntil(b"\r\n\r\n") else SMALL
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    writer.write(f"{head}\r\n\r\n".encode() + body)
    await writer.drain()
    # The client closes the connection, as it does with slurmrestd.
    await reader.read(1)
    writer.close()


def _serve(listener: socket.socket) -> None:
    async def forever() -> None:
        server = await asyncio.start_server(_answer, sock=listener)
        await server.serve_forever()

    asyncio.run(forever())


async def _by_h11(h11: Any, url: str) -> bytes:
    parts = urlsplit(url)
    link: Any = h11.Connection(h11.CLIENT, max_incomplete_event_size=65536)
    fields = [("Host", parts.netloc), ("Accept", "application/json")]
    asked = link.send(h11.Request(method="GET", target=parts.path, headers=fields))
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    body = bytearray()
    try:
        writer.write(asked + link.send(h11.EndOfMessage()))
        while True:
            event: Any = link.next_event()
            if event is h11.NEED_DATA:
                link.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return bytes(body)
    finally:
        writer.transport.abort()


async def _cpu(call: Callable[[str], Awaitable[object]], url: str, times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        await call(url)
    return (time.process_time() - began) / times * 1000


def _print(what: str, own: list[float], library: list[float], unit: str) -> None:
    def shown(found: list[float]) -> str:
        return f"{statistics.median(found):.3g} ({min(found):.3g} to {max(found):.3g}) {unit}"

    print(f"{what}: ours {shown(own)}, the library {shown(library)}")


async def http(port: int) -> None:
    """Requests to a server on loopback, one connection each."""
    h11 = importlib.import_module("h11")
    for path, times in (("/small", 400), ("/large", 4)):
        url = f"http://127.0.0.1:{port}{path}"
        own, library = list[float](), list[float]()
        for _ in range(ROUNDS):
            own.append(await _cpu(exchange, url, times))
            library.append(await _cpu(lambda url: _by_h11(h11, url), url, times))
        _print(f"h11, {path[1:]} reply", own, library, "ms")


def tokens() -> None:
    """Tokens that are made and checked."""
    pyjwt: Any = importlib.import_module("jwt")
    now = int(time.time())
    token = jwt.mint(KEY, "slurm", 900, now)
    claims = jwt.verify(KEY, token, now)

    def each(call: Callable[[], object]) -> list[float]:
        found: list[float] = []
        for _ in range(ROUNDS):
            began = time.process_time()
            for _ in range(2_000):
                call()
            found.append((time.process_time() - began) / 2_000 * 1e6)
        return found

    made = each(lambda: jwt.mint(KEY, "slurm", 900, now))
    _print("PyJWT, made", made, each(lambda: pyjwt.encode(claims, KEY, algorithm="HS256")), "us")
    read = each(lambda: pyjwt.decode(token, KEY, algorithms=["HS256"]))
    _print("PyJWT, checked", each(lambda: jwt.verify(KEY, token, now)), read, "us")


def main() -> None:
    """Measure all pairs."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = multiprocessing.Process(target=_serve, args=(listener,), daemon=True)
        server.start()
        try:
            asyncio.run(http(listener.getsockname()[1]))
        finally:
            server.terminate()
    tokens()


if __name__ == "__main__":
    main()
