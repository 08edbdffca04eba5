"""For how long the addresses of a slurmrestd's name are used, and when the name is asked again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from penstock.slurm.rest.connection import KEPT_S, AddressCache

HOST = "slurm-restapi.slurm"


class Names:
    """Resolves every name to `addresses`, and counts how often."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked = 0

    async def __call__(self, host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        self.asked += 1
        if not self.addresses:
            raise socket.gaierror("unknown")
        return [(0, 0, 0, "", (one, port)) for one in self.addresses]


@pytest.fixture
async def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    found = Names("127.0.0.1")
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
    return found


@asynccontextmanager
async def listening(address: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[int]:
    def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(accept, address, port) as server:
        yield server.sockets[0].getsockname()[1]


async def connect(cache: AddressCache, port: int) -> None:
    _, writer = await cache.connect(HOST, port, secure=False, limit=1024)
    writer.transport.abort()


async def _no_answer(*_: object, **__: object) -> None:
    await asyncio.get_running_loop().create_future()


async def test_a_name_is_resolved_once_in_a_while(names: Names):
    now = 100.0
    cache = AddressCache(lambda: now)
    async with listening() as port:
        for _ in range(3):
            await connect(cache, port)
        assert names.asked == 1
        now += KEPT_S
        await connect(cache, port)
    assert names.asked == 2


async def test_a_service_that_got_another_address_is_found_at_once(names: Names):
    cache = AddressCache()
    async with listening() as port:
        await connect(cache, port)
    names.addresses = ("127.0.0.2",)
    async with listening("127.0.0.2", port):
        await connect(cache, port)
    assert names.asked == 2


async def test_an_address_that_does_not_answer_in_time_is_not_used_again(
    names: Names, monkeypatch: pytest.MonkeyPatch
):
    cache = AddressCache()
    async with listening() as port:
        await connect(cache, port)
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "open_connection", _no_answer)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await connect(cache, port)
        await connect(cache, port)
    assert names.asked == 2


async def test_an_address_to_which_no_connection_was_made_is_not_kept(names: Names):
    cache = AddressCache()
    async with listening() as port:
        pass
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            await connect(cache, port)
    assert names.asked == 2


async def test_each_address_of_a_name_is_tried(names: Names):
    names.addresses = ("127.0.0.2", "127.0.0.1")
    async with listening() as port:
        await connect(AddressCache(), port)


async def test_an_unknown_name_is_reported_as_such(names: Names):
    names.addresses = ()
    with pytest.raises(socket.gaierror):
        await connect(AddressCache(), 1)
