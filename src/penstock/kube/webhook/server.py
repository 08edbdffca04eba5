"""An HTTPS server for webhooks whose certificate can be exchanged while it serves."""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Callable, Mapping

import structlog
from aiohttp import web

from penstock.kube.client.metrics import Metrics
from penstock.kube.webhook.review import AdmissionError, Handler, answer

LARGEST = 8 * 1024 * 1024
"""Bytes of a request: a new and an old object of 1.5 MiB each, the most that etcd stores, in JSON
that may escape them."""
CLOSE_S = 5.0
"""Seconds that requests under way get at the end."""

Serve = Callable[[web.Request], Awaitable[web.StreamResponse]]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class WebhookServer:
    """Serves each path of `handlers` as an admission webhook, from the first certificate on.

    Without `host` all interfaces are served; port 0 takes any free one.
    """

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        metrics: Metrics,
        *,
        port: int,
        host: str | None = None,
    ) -> None:
        self._metrics = metrics
        self._host = host
        self._wanted = port
        self._shown: tuple[bytes, bytes] | None = None
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        app = web.Application(client_max_size=LARGEST)
        for path, handler in handlers.items():
            app.router.add_post(path, self._serving(path, handler))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_S)
        self.port = 0
        """The port that is served; 0 before the first certificate."""

    async def show(self, certificate: bytes, key: bytes) -> None:
        """Show this certificate (PEM, the leaf first) to who connects from now on.

        Connections that are open go on. Raises OSError when the port is taken, and ssl.SSLError, an
        OSError too, for a certificate that is none.
        """
        if self._shown == (certificate, key):
            return
        load_chain(self._context, certificate, key)
        self._shown = certificate, key
        if not self.port:
            await self._runner.setup()
            site = web.TCPSite(self._runner, self._host, self._wanted, ssl_context=self._context)
            await site.start()
            self.port = int(self._runner.addresses[0][1])
        log.info("webhook certificate in use", port=self.port)

    async def close(self) -> None:
        """End connections and serve no more."""
        await self._runner.cleanup()

    def _serving(self, path: str, handler: Handler) -> Serve:
        counted = self._metrics.admissions

        async def serve(request: web.Request) -> web.Response:
            outcome = "error"
            try:
                body = answer(await request.read(), handler)
                outcome = "answered"
            except AdmissionError as error:
                return web.Response(status=400, text=f"{error}\n")
            except Exception:
                # The API server goes by the failurePolicy then; the next request is answered.
                log.exception("webhook failed", path=path)
                return web.Response(status=500, text="the webhook failed, see the operator's log\n")
            finally:
                counted.labels(path, outcome).inc()
            return web.Response(body=body, content_type="application/json")

        return serve


def load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Give a context this certificate and key. Raises ssl.SSLError."""
    # OpenSSL takes a chain from files only, and the operator's file system is read-only: a file in
    # memory, which nobody else can open, and of which nothing is left.
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(key.rstrip() + b"\n" + certificate)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
