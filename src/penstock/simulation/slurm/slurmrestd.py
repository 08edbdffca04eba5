"""Simulated slurmrestd in front of a SimulatedSlurmctld, in this process: over HTTP, or without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import parse_qsl, urlsplit

from aiohttp import web

from penstock.simulation.faults import Fault
from penstock.simulation.slurm.rest_replies import USER_HEADER, RestRequest, SlurmAnswers
from penstock.simulation.slurm.slurmctld import SimulatedSlurmctld
from penstock.slurm.rest.http import Answer, unfenced


class SimulatedSlurmrestd(SlurmAnswers):
    """Use as `async with SimulatedSlurmrestd() as rest:`; it listens at `rest.url`.

    Set `fault` to make it misbehave, and `delay_s` to the delay of a slow one.
    """

    def __init__(
        self,
        slurmctld: SimulatedSlurmctld | None = None,
        *,
        key: bytes | None = None,
        parsers: Iterable[str] = ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"),
    ) -> None:
        super().__init__(slurmctld, key=key, parsers=parsers)
        self.delay_s = 1.0
        self._port = 0
        self._runner: web.AppRunner | None = None
        self._release = asyncio.Event()
        self._called = asyncio.Event()

    @property
    def port(self) -> int:
        """Where it listens; the same over `stop` and `start`."""
        return self._port

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> SimulatedSlurmrestd:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen."""
        self._release.clear()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening; connections fail from now on."""
        self._release.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def called(self, count: int, path: str = "") -> None:
        """Wait until so many requests with `path` in them came since it was made."""
        while sum(path in call for call in self.calls) < count:
            self._called.clear()
            await self._called.wait()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.calls.append(f"{request.method} {request.path_qs}")
        self._called.set()
        if self.fault is Fault.HANG:
            await self._release.wait()
        if self.fault is Fault.SLOW:
            await asyncio.sleep(self.delay_s)
        if self.fault in {Fault.HANG, Fault.REFUSE}:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        token = request.headers.get(USER_HEADER, "")
        query = dict(request.query)
        found = self.answer(
            RestRequest(
                request.method, request.rel_url.raw_path, query, token, await request.read()
            )
        )
        if found.status == 304:
            return web.Response(status=304)
        return web.Response(
            status=found.status, body=found.body, headers={"Content-Type": found.content_type}
        )


class InMemorySlurmrestd(SlurmAnswers):
    """The same without sockets: pass `exchange` to `Slurmrestd`.

    Time passes by the running loop's clock: `latency_s` for each answer, `delay_s` for slow ones.
    """

    def __init__(
        self,
        slurmctld: SimulatedSlurmctld | None = None,
        *,
        key: bytes | None = None,
        latency_s: float = 0.005,
    ) -> None:
        super().__init__(slurmctld, key=key)
        self.latency_s = latency_s
        self.delay_s = 5.0
        self.waits_s = 0.0
        """Seconds that each answer takes beside that, as while slurmctld's names do not resolve."""

    async def exchange(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        fence: Callable[[], None] = unfenced,
        /,
    ) -> Answer:
        """Answer one request. Raises ConnectionRefusedError, or never returns, by `fault`."""
        parts = urlsplit(url)
        self.calls.append(f"{method} {parts.path}" + (f"?{parts.query}" if parts.query else ""))
        delay = self.delay_s if self.fault is Fault.SLOW else self.latency_s
        await asyncio.sleep(delay + self.waits_s)
        if self.fault is Fault.REFUSE:
            raise ConnectionRefusedError(111, "Connection refused")
        if self.fault is Fault.HANG:
            await asyncio.get_running_loop().create_future()
        fence()
        query = dict(parse_qsl(parts.query))
        return self.answer(
            RestRequest(method, parts.path, query, headers.get(USER_HEADER, ""), body)
        )
