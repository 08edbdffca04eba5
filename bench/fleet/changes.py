"""Waiting for what a watch shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

TIMEOUT_S = 1200.0


class Changes:
    """Call `seen` for each change; `until` checks its condition after each."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def seen(self) -> None:
        """Something has changed."""
        self._event.set()

    async def until(self, condition: Callable[[], bool], what: str) -> float:
        """Wait until a change makes it so; the moment at which it did (monotonic).

        Raises TimeoutError.
        """
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not condition():
                    self._event.clear()
                    await self._event.wait()
        except TimeoutError:
            raise TimeoutError(f"not within {TIMEOUT_S:g} s: {what}") from None
        return time.monotonic()
