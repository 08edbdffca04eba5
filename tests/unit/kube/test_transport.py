"""The real transport, on real sockets with TLS."""

from __future__ import annotations

import asyncio
import ssl

from penstock.kube.client.config import Config
from penstock.kube.client.credentials import Access
from penstock.kube.client.transport import HttpTransport, Request
from penstock.kube.webhook.certificates import renewed
from unit.kube.test_webhook import HOST, NOW, serving, trusting


class Trusting:
    """Credentials that are a TLS context."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._access = Access({}, context)

    async def access(self) -> Access:
        return self._access

    def expire(self) -> None:
        """There is nothing to read again."""


async def test_connections_that_were_given_up_midway_are_closed_when_the_transport_is():
    bundle = renewed(None, {HOST}, NOW)
    async with serving(bundle) as server:
        config = Config(f"https://{HOST}:{server.port}", Trusting(trusting(bundle)))
        # A handshake takes some ms; somewhere in it each of these is given up.
        for step in range(20):
            transport = HttpTransport(config)
            asked = [asyncio.create_task(transport.send(Request("GET", "/"))) for _ in range(8)]
            await asyncio.wait(asked, timeout=step / 1000)
            opened = set(transport._sockets)
            for one in asked:
                one.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            await transport.close()
            assert [one for one in opened if one.fileno() >= 0] == []
