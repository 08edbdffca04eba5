"""Connections to slurmrestd; the addresses of its name are kept for a time.

Each request has a connection of its own. Resolving a name takes a thread, which costs as much CPU
as the rest of a request to which nothing changed.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

KEPT_S = 30.0
"""As long as CoreDNS keeps an answer by default."""


class AddressCache:
    """Addresses to which the last connection to a name was made, used from one event loop.

    `clock` gives monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}

    async def connect(self, host: str, port: int, *, secure: bool, limit: int) -> Streams:
        """Connect by name. Raises OSError; an unknown name is a socket.gaierror.

        Where a kept address fails, the name is resolved again: its Service may be another one.
        """
        if kept := self._recent(host):
            try:
                return await _open(kept, host, port, secure=secure, limit=limit)
            except OSError:
                self._known.pop(host, None)
            except asyncio.CancelledError:
                # The caller's time limit: the address may be one that nobody has any more.
                self._known.pop(host, None)
                raise
        found = await _resolve(host, port)
        streams = await _open(found, host, port, secure=secure, limit=limit)
        now = self._clock()
        self._known = {
            name: known for name, known in self._known.items() if now - known[0] < KEPT_S
        }
        self._known[host] = now, found
        return streams

    def _recent(self, host: str) -> tuple[str, ...]:
        since, found = self._known.get(host, (0.0, ()))
        return found if found and self._clock() - since < KEPT_S else ()


async def connect(host: str, port: int, *, secure: bool, limit: int) -> Streams:
    """Connect by name, which is resolved now."""
    return await asyncio.open_connection(host, port, ssl=secure or None, limit=limit)


async def _resolve(host: str, port: int) -> tuple[str, ...]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(one[4][0]) for one in found))


async def _open(
    addresses: Sequence[str], host: str, port: int, *, secure: bool, limit: int
) -> Streams:
    """Connect to the first address that takes it. Raises the OSError of the last one."""
    name = host if secure else None
    *others, last = addresses
    for address in others:
        try:
            return await asyncio.open_connection(
                address, port, ssl=secure or None, server_hostname=name, limit=limit
            )
        except OSError:
            continue
    return await asyncio.open_connection(
        last, port, ssl=secure or None, server_hostname=name, limit=limit
    )
