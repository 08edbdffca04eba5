"""A proxy in front of a real slurmrestd that misbehaves on demand, for end-to-end tests.

    python -m penstock.simulation.fault_proxy --listen 0.0.0.0:6820
        --upstream URL --control-port 6821

`PUT http://<host>:6821/mode/<mode>` switches (see `faults.Fault` for the modes; `pass` is none),
`GET /mode` returns the mode, `GET /calls` the number of requests since the last `DELETE /calls`.
`refuse` closes the listening socket, so that clients see a real "connection refused".
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal

from aiohttp import web

from penstock.simulation import faults
from penstock.simulation.faults import Fault
from penstock.slurm.rest.http import exchange

PASSED_ON = ("X-SLURM-USER-TOKEN", "X-SLURM-USER-NAME", "Content-Type")


class FaultProxy:
    """Use as `async with FaultProxy(upstream) as proxy:`; it listens at `proxy.url`."""

    def __init__(
        self, upstream: str, *, host: str = "127.0.0.1", port: int = 0, delay_s: float = 5.0
    ) -> None:
        self.upstream = upstream.rstrip("/")
        self.fault = Fault.NONE
        self.calls = 0
        self.delay_s = delay_s
        self._host = host
        self._port = port
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://{self._host}:{self._port}"

    async def __aenter__(self) -> FaultProxy:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.switch(Fault.REFUSE)
        if self._runner is not None:
            await self._runner.cleanup()

    async def switch(self, fault: Fault) -> None:
        """Misbehave in this way from now on; requests that hang are dropped."""
        self.fault = fault
        self._changed.set()
        self._changed = asyncio.Event()
        if fault is Fault.REFUSE and self._site is not None:
            await self._site.stop()
            self._site = None
        elif fault is not Fault.REFUSE and self._site is None:
            await self._listen()

    async def _listen(self) -> None:
        if self._runner is None:
            return
        self._site = web.TCPSite(self._runner, self._host, self._port, reuse_address=True)
        await self._site.start()
        self._port = self._runner.addresses[0][1]

    async def _pass_on(self, request: web.Request) -> web.Response:
        self.calls += 1
        fault = self.fault
        if fault is Fault.HANG:
            await self._changed.wait()
        if fault is Fault.SLOW:
            await asyncio.sleep(self.delay_s)
        if fault in {Fault.HANG, Fault.REFUSE}:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        if (instead := faults.answer(fault)) is not None:
            status, body, content_type = instead
            return web.Response(status=status, body=body, content_type=content_type)
        return await self._ask(request, fault)

    async def _ask(self, request: web.Request, fault: Fault) -> web.Response:
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        url = self.upstream + request.raw_path
        try:
            answer = await exchange(url, request.method, headers, await request.read())
        except (OSError, EOFError, ValueError) as error:
            return web.Response(status=503, text=f"upstream: {error}")
        return web.Response(
            status=answer.status,
            body=faults.spoil(fault, request.path, answer.body),
            headers={"Content-Type": answer.content_type} if answer.content_type else None,
        )


def control(proxy: FaultProxy) -> web.Application:
    """The application that switches the proxy."""

    async def mode(_: web.Request) -> web.Response:
        return web.json_response({"mode": proxy.fault.value})

    async def switch(request: web.Request) -> web.Response:
        try:
            await proxy.switch(Fault(request.match_info["mode"]))
        except ValueError as error:
            return web.json_response({"error": str(error)}, status=404)
        return await mode(request)

    async def calls(_: web.Request) -> web.Response:
        return web.json_response({"calls": proxy.calls})

    async def forget(request: web.Request) -> web.Response:
        proxy.calls = 0
        return await calls(request)

    app = web.Application()
    app.add_routes(
        [
            web.get("/mode", mode),
            web.put("/mode/{mode}", switch),
            web.get("/calls", calls),
            web.delete("/calls", forget),
        ]
    )
    return app


async def serve(listen: str, upstream: str, control_port: int, delay_s: float) -> None:
    """Run until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    host, _, port = listen.rpartition(":")
    async with FaultProxy(upstream, host=host, port=int(port), delay_s=delay_s) as proxy:
        runner = web.AppRunner(control(proxy), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, host, control_port).start()
        try:
            await stop.wait()
        finally:
            await runner.cleanup()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m penstock.simulation.fault_proxy")
    parser.add_argument("--listen", default="127.0.0.1:6820", metavar="HOST:PORT")
    parser.add_argument("--upstream", required=True, metavar="URL")
    parser.add_argument("--control-port", type=int, default=6821, metavar="PORT")
    parser.add_argument("--delay", type=float, default=5.0, help="seconds, for the mode 'slow'")
    args = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(args.listen, args.upstream, args.control_port, args.delay))


if __name__ == "__main__":
    main()
