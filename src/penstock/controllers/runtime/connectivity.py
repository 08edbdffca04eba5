"""Probes whether the name of an external daemon resolves and its port accepts connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

from penstock.decide.cluster.connectivity import PATIENCE_S, End
from penstock.kube.client.clock import Clock

PAUSE_S = 8.0
"""So long an answer holds: a daemon notes each connection on which nobody speaks in its log."""

Connect = Callable[[str, int], Awaitable[None]]
"""Connects to host and port, and hangs up. Raises OSError; may take for ever."""


async def connect(host: str, port: int) -> None:
    """Connect by TCP."""
    _, writer = await asyncio.open_connection(host, port)
    writer.close()


class PortProbe:
    """Looks at one port after the other, each at most every few seconds."""

    def __init__(self, clock: Clock, dial: Connect = connect) -> None:
        self._clock = clock
        self._dial = dial
        self._found: dict[tuple[str, str, int], tuple[float, End]] = {}

    async def probe(self, namespace: str, host: str, port: int) -> End:
        """How a connection ends that is made as from a pod of this namespace."""
        key, now = (namespace, host, port), self._clock.monotonic()
        at, end = self._found.get(key, (float("-inf"), End.OPEN))
        if now - at >= PAUSE_S:
            end = await self._try(host, port)
            if end is End.NAMELESS and "." not in host:
                # Pods have their own namespace in the search list of their DNS, we have ours.
                end = await self._try(f"{host}.{namespace}", port)
            self._found[key] = (self._clock.monotonic(), end)
        return end

    async def _try(self, host: str, port: int) -> End:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._dial(host, port)
        except TimeoutError:
            return End.SILENT
        except socket.gaierror:
            return End.NAMELESS
        except ConnectionRefusedError:
            return End.REFUSED
        except OSError as error:
            # For a name with several addresses, asyncio wraps one error for each in an OSError.
            return End.REFUSED if "Errno 111" in str(error) else End.NO_ROUTE
        return End.OPEN
