"""An HTTPS server for webhooks whose certificate can be exchanged while it serves."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import structlog
from aiohttp import web

from penstock.kube.client.metrics import Metrics
from penstock.kube.webhook.callers import Callers
from penstock.kube.webhook.limits import ByteBudget, Limits, NoRoomError, TooLargeError
from penstock.kube.webhook.review import AdmissionError, Handler, answer

CLOSE_S = 5.0
"""Seconds that requests under way get at the end."""
LINGER_S = 1.0
"""Seconds for which the rest of a request is read that was answered before its end."""
KEPT_S = 120.0
"""Seconds for which an idle connection stays open; an API server uses one for many requests."""

Serve = Callable[[web.Request], Awaitable[web.StreamResponse]]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class WebhookServer:
    """Serves each path of `handlers` as an admission webhook, from the first certificate on.

    Handlers run in threads: the slowest one delays no other work of the process. Without `host` all
    interfaces are served; port 0 takes any free one.
    """

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        metrics: Metrics,
        *,
        port: int,
        host: str | None = None,
        callers: Callers | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._metrics = metrics
        self._host = host
        self._wanted = port
        self._callers = callers or Callers()
        self._limits = limits or Limits()
        self._slots = asyncio.Semaphore(self._limits.requests)
        self._budget = ByteBudget(self._limits.bytes, self._limits.largest)
        self._threads = ThreadPoolExecutor(self._limits.threads, "webhook")
        self._silent: dict[asyncio.BaseProtocol, asyncio.TimerHandle] = {}
        self._shown: tuple[bytes, bytes] | None = None
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._listening: asyncio.Server | None = None
        app = web.Application(middlewares=[self._admitted])
        for path, handler in handlers.items():
            app.router.add_post(path, self._serving(path, handler))
        self._runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=CLOSE_S,
            keepalive_timeout=KEPT_S,
            lingering_time=LINGER_S,
        )
        self.port = 0
        """The port that is served; 0 before the first certificate."""

    async def show(self, certificate: bytes, key: bytes) -> None:
        """Show this certificate (PEM, the leaf first) to who connects from now on.

        Connections that are open go on. Raises OSError when the port is taken or the file of client
        authorities cannot be read, and ssl.SSLError, an OSError too, for a certificate that is
        none.
        """
        if self._shown == (certificate, key):
            return
        load_chain(self._context, certificate, key)
        self._callers.require(self._context)
        self._shown = certificate, key
        if not self.port:
            await self._runner.setup()
            self._listening = await asyncio.get_running_loop().create_server(
                self._connected,
                self._host,
                self._wanted,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.read_s,
                reuse_address=True,
            )
            self.port = int(self._listening.sockets[0].getsockname()[1])
        log.info("webhook certificate in use", port=self.port)

    async def close(self) -> None:
        """End connections and serve no more."""
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _connected(self) -> asyncio.BaseProtocol:
        """The protocol of a new connection, which is closed unless it sends a request in time."""
        server = self._runner.server
        if server is None or len(server.connections) >= self._limits.connections:
            return _Hangup()
        protocol = server()
        self._silent[protocol] = asyncio.get_running_loop().call_later(
            2 * self._limits.read_s, self._hang_up, protocol
        )
        return protocol

    def _hang_up(self, protocol: asyncio.BaseProtocol) -> None:
        del self._silent[protocol]
        if isinstance(protocol, web.RequestHandler):
            protocol.force_close()

    @web.middleware
    async def _admitted(self, request: web.Request, handler: Serve) -> web.StreamResponse:
        """Serve callers that may ask."""
        timer = self._silent.pop(request.protocol, None)
        if timer is not None:
            timer.cancel()
        tls = request.transport.get_extra_info("ssl_object") if request.transport else None
        if not self._callers.admit(tls.getpeercert() if tls is not None else None):
            return web.Response(status=403, text="this client certificate may not ask webhooks\n")
        return await handler(request)

    def _serving(self, path: str, handler: Handler) -> Serve:
        counted = self._metrics.admissions

        async def serve(request: web.Request) -> web.Response:
            outcome = "error"
            try:
                body = await self._answer(request, handler)
                outcome = "answered"
            except AdmissionError as error:
                return web.Response(status=400, text=f"{error}\n")
            except TooLargeError as error:
                return _closing(413, str(error))
            except NoRoomError as error:
                return _closing(503, str(error))
            except TimeoutError:
                log.warning("webhook request exceeded its time", path=path)
                return _closing(503, "the request exceeded its time")
            except (OSError, web.RequestPayloadError) as error:
                log.info("webhook request was cut", path=path, error=repr(error))
                return _closing(400, "the request was cut")
            except Exception:
                # The API server goes by the failurePolicy then; the next request is answered.
                log.exception("webhook failed", path=path)
                return web.Response(status=500, text="the webhook failed, see the operator's log\n")
            finally:
                counted.labels(path, outcome).inc()
            return web.Response(body=body, content_type="application/json")

        return serve

    async def _answer(self, request: web.Request, handler: Handler) -> bytes:
        """Read and judge one request. Raises AdmissionError and the errors of `limits`.

        Raises TimeoutError for a caller or a handler that is too slow, and OSError or
        RequestPayloadError for a caller that hangs up.
        """
        limits, loop = self._limits, asyncio.get_running_loop()
        async with asyncio.timeout(limits.read_s):
            await self._slots.acquire()
        share = self._budget.share()

        def release(_: object = None) -> None:
            share.give_back()
            self._slots.release()

        try:
            parts: list[bytes] = []
            async with asyncio.timeout(limits.read_s):
                async for part in request.content.iter_any():
                    share.take(len(part))
                    parts.append(part)
            judging = loop.run_in_executor(self._threads, answer, b"".join(parts), handler)
        except BaseException:
            release()
            raise
        # A thread cannot be ended: what it works on counts until it is through.
        judging.add_done_callback(release)
        async with asyncio.timeout(limits.judge_s):
            return await asyncio.shield(judging)


class _Hangup(asyncio.Protocol):
    """A connection beyond the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _closing(status: int, words: str) -> web.Response:
    """A reply after which the connection ends, so that no rest of a request is read."""
    response = web.Response(status=status, text=f"{words}\n")
    response.force_close()
    return response


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
