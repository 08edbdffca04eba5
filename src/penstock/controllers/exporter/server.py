"""The HTTP of the exporter: /metrics and /health, and on a second port /metrics about itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from penstock.controllers.exporter.collection import Collection
from penstock.controllers.exporter.exposition import CONTENT_TYPE
from penstock.controllers.runtime.arguments import Address


@asynccontextmanager
async def serving(
    collection: Collection, metrics: Address, monitoring: Address
) -> AsyncGenerator[tuple[int, ...]]:
    """Serve while the block runs, and return the ports. Raises OSError when one is taken."""
    async with AsyncExitStack() as stack:
        ports = [await _served(stack, _slurm(collection), metrics)]
        if monitoring.port:
            ports.append(await _served(stack, _own(collection), monitoring))
        yield tuple(ports)


async def _served(stack: AsyncExitStack, app: web.Application, at: Address) -> int:
    runner = web.AppRunner(app, access_log=None)
    stack.push_async_callback(runner.cleanup)
    await runner.setup()
    await web.TCPSite(runner, at.host, at.port).start()
    return int(runner.addresses[0][1])


def _slurm(collection: Collection) -> web.Application:
    async def metrics(request: web.Request) -> web.Response:
        found = await collection.scrape()
        headers = {"Content-Type": CONTENT_TYPE}
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return web.Response(body=found.compressed, headers=headers)
        return web.Response(body=found.text, headers=headers)

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="healthy")

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/health", health)
    return app


def _own(collection: Collection) -> web.Application:
    async def metrics(_: web.Request) -> web.Response:
        text = generate_latest(collection.metrics.registry)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    return app
