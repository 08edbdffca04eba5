"""What the engine's tests against a real API server share."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.kube import Cache, Client, HttpTransport, from_kubeconfig

T = TypeVar("T", bound=KubeObject)

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", KubeObject, namespaced=False)


class Kubectl:
    """kubectl against the test's API server."""

    def __init__(self, node: Environment) -> None:
        self._env = node.env

    def run(self, *arguments: str, manifest: Any = None) -> subprocess.CompletedProcess[str]:
        text = None if manifest is None else json.dumps(manifest)
        return subprocess.run(
            [shutil.which("kubectl", path=self._env["PATH"]) or "kubectl", *arguments],
            env=self._env,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )

    def __call__(self, *arguments: str, manifest: Any = None) -> str:
        done = self.run(*arguments, manifest=manifest)
        assert done.returncode == 0, done.stderr
        return done.stdout


class Environment(Protocol):
    """What kubectl needs of the fixture `api_node`."""

    @property
    def env(self) -> Mapping[str, str]: ...


class Node(Protocol):
    """What is needed of the fixture `api_node`."""

    @property
    def kubeconfig_path(self) -> Path: ...


@asynccontextmanager
async def client_of(node: Node) -> AsyncGenerator[Client]:
    transport = HttpTransport(from_kubeconfig([node.kubeconfig_path]))
    try:
        yield Client(transport)
    finally:
        await transport.close()


@asynccontextmanager
async def namespace_of(node: Node) -> AsyncGenerator[tuple[Client, str]]:
    """A client and a namespace of one test's own."""
    async with client_of(node) as client:
        name = f"test-{uuid.uuid4().hex[:8]}"
        await client.create(NAMESPACES, {"kind": "Namespace", "metadata": {"name": name}})
        try:
            yield client, name
        finally:
            await client.delete(NAMESPACES, "", name)


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait until it holds; the caller bounds the time."""
    while True:
        if holds():
            return
        await asyncio.sleep(0.01)


class Gate:
    """A TCP proxy before the API server that can be shut: its connections break, none opens."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self._port = port
        self._own = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @classmethod
    @asynccontextmanager
    async def to(cls, server: str) -> AsyncGenerator[Gate]:
        parts = urlsplit(server)
        assert parts.hostname is not None
        gate = cls(parts.hostname, parts.port or 443)
        await gate.open()
        try:
            yield gate
        finally:
            await gate.shut()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._own}"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._own)
        self._own = int(self._server.sockets[0].getsockname()[1])

    async def shut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in tuple(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward_reader, onward = await asyncio.open_connection(self.host, self._port)
        self._writers |= {writer, onward}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pipe(reader, onward))
                group.create_task(_pipe(onward_reader, writer))
        finally:
            self._writers -= {writer, onward}


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def running(cache: Cache[T]) -> AsyncGenerator[Cache[T]]:
    """A cache that is synced and watches while the block runs."""
    task = asyncio.ensure_future(cache.run())
    try:
        async with asyncio.timeout(30):
            await cache.wait_synced()
        yield cache
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(cache: Cache[Any], holds: Callable[[], bool]) -> None:
    """Wait until a change of the cache makes it so."""
    changed = asyncio.Event()
    stop = cache.subscribe(lambda _old, _new: changed.set())
    try:
        async with asyncio.timeout(30):
            while not holds():
                changed.clear()
                await changed.wait()
    finally:
        stop()
