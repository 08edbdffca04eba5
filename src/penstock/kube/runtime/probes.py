"""The operator's own HTTP: /livez (also as /healthz), /readyz and /metrics."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Bound:
    """The ports that are served, of use when 0 was asked for; 0 for none."""

    health_port: int
    metrics_port: int


@asynccontextmanager
async def serve(
    registry: CollectorRegistry,
    *,
    alive: Callable[[], str | None],
    ready: Callable[[], str | None],
    host: str | None = None,
    health_port: int = 8081,
    metrics_host: str | None = None,
    metrics_port: int | None = 8080,
) -> AsyncGenerator[Bound]:
    """Serve while the block runs.

    `alive` and `ready` return the problem, or None. An empty `host` means all interfaces, and
    without `metrics_port` no metrics.

    Raises OSError when a port is taken.
    """
    health = web.Application()
    for path in ("/livez", "/healthz"):
        health.router.add_get(path, _probe(alive))
    health.router.add_get("/readyz", _probe(ready))
    metrics = web.Application()
    metrics.router.add_get("/metrics", _metrics(registry))
    served = [(health, host, health_port)]
    if metrics_port is not None:
        served.append((metrics, metrics_host or host, metrics_port))
    runners: list[web.AppRunner] = []
    try:
        ports: list[int] = []
        for app, where, port in served:
            runner = web.AppRunner(app, access_log=None)
            runners.append(runner)
            await runner.setup()
            await web.TCPSite(runner, where, port).start()
            ports.append(int(runner.addresses[0][1]))
        yield Bound(ports[0], ports[1] if len(ports) > 1 else 0)
    finally:
        for runner in runners:
            await runner.cleanup()


def _probe(check: Callable[[], str | None]) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        wrong = check()
        return web.Response(text=f"{wrong or 'ok'}\n", status=503 if wrong else 200)

    return answer


def _metrics(registry: CollectorRegistry) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    return answer
