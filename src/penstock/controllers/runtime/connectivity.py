"""Probes whether the name of an external daemon resolves and its port accepts connections."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

from penstock.decide.cluster.connectivity import PATIENCE_S, End, is_probed, leads_inside
from penstock.kube.client.clock import Clock

PAUSE_S = 8.0
"""So long an answer holds: a daemon notes each connection on which nobody speaks in its log."""

MOST_RESULTS: Final = 1024
"""Results that are kept."""

Check = Callable[[str], None]
"""Raises NotProbedError for an address to which no connection is made."""
Connect = Callable[[str, int, Check], Awaitable[None]]
"""Connects to host and port if its addresses pass the check, and hangs up.

Raises OSError and NotProbedError; may take for ever."""


class NotProbedError(Exception):
    """No connection is made; `end` is the result."""

    def __init__(self, end: End) -> None:
        super().__init__(end.value)
        self.end = end


async def connect(host: str, port: int, check: Check) -> None:
    """Connect by TCP to one of the addresses that were checked, not to the name once more."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    for address in addresses:
        check(address)
    for address in addresses:
        try:
            _, writer = await asyncio.open_connection(address, port)
        except OSError:
            if address == addresses[-1]:
                raise
        else:
            writer.close()
            return


def own_addresses(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Addresses of the API server and of this pod."""
    found = {environment.get("KUBERNETES_SERVICE_HOST", "")}
    # The pod may have no name of its own in DNS.
    with contextlib.suppress(OSError):
        found.update(str(one[4][0]) for one in socket.getaddrinfo(socket.gethostname(), None))
    return frozenset(found - {""})


class PortProbe:
    """Probes one port after the other, each at most every few seconds.

    Hosts come from fields of users, who see the result: it connects to no address inside the
    cluster. `own` are addresses of the API server and of
    this pod, `services` those of Services that are in another namespace than the one given.
    """

    def __init__(
        self,
        clock: Clock,
        dial: Connect = connect,
        *,
        own: Collection[str] = (),
        services: Callable[[str], Collection[str]] = lambda _: (),
    ) -> None:
        self._clock = clock
        self._dial = dial
        self._own = own
        self._services = services
        self._found: dict[tuple[str, str, int], tuple[float, End]] = {}

    async def probe(self, namespace: str, host: str, port: int) -> End:
        """How a connection ends that is made as from a pod of this namespace."""
        key, now = (namespace, host, port), self._clock.monotonic()
        at, end = self._found.get(key, (float("-inf"), End.OPEN))
        if now - at >= PAUSE_S:
            end = await self._try(namespace, host, port)
            if end is End.NAMELESS and "." not in host:
                # Pods have their own namespace in the search list of their DNS, we have ours.
                end = await self._try(namespace, f"{host}.{namespace}", port)
            if len(self._found) >= MOST_RESULTS:
                self._found = {
                    one: found for one, found in self._found.items() if now - found[0] < PAUSE_S
                }
            self._found[key] = (self._clock.monotonic(), end)
        return end

    async def _try(self, namespace: str, host: str, port: int) -> End:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._dial(host, port, lambda address: self._check(namespace, address))
        except NotProbedError as error:
            return error.end
        except TimeoutError:
            return End.SILENT
        except socket.gaierror:
            return End.NAMELESS
        except ConnectionRefusedError:
            return End.REFUSED
        except OSError:
            return End.NO_ROUTE
        return End.OPEN

    def _check(self, namespace: str, address: str) -> None:
        if leads_inside(address, self._own):
            raise NotProbedError(End.INSIDE)
        if not is_probed(address, self._services(namespace)):
            raise NotProbedError(End.OPEN)
