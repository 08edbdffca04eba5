"""Runs work on the jail beside the event loop: a volume of the network may block for minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from penstock.controllers.jailed_config.jail_files import JailFiles
from penstock.kube import Clock, NotLeaderError

T = TypeVar("T")
STUCK_S = 60.0
"""After so many seconds one piece of work counts as stuck."""


class JailWorker:
    """One thread, so that two writers of this process never meet.

    `may_write` is whether this process leads at this very moment: one that was frozen must not
    replace files of its successor by older ones.
    """

    def __init__(
        self, files: JailFiles, clock: Clock, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        self._files = files
        self._clock = clock
        self._may_write = may_write
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="jail")
        self._began: float | None = None

    async def run(self, work: Callable[[JailFiles], T]) -> T:
        """The result of `work(files)`. Raises what it raises, and NotLeaderError."""
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, partial(self._guarded, work)
        )

    def problem(self) -> str | None:
        """Why the jail does not answer; None while it does."""
        began = self._began
        if began is None or self._clock.monotonic() - began < STUCK_S:
            return None
        return f"the jail has not answered for {STUCK_S:.0f} s"

    def close(self) -> None:
        """Begin nothing more. Work that is stuck is not waited for."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _guarded(self, work: Callable[[JailFiles], T]) -> T:
        if not self._may_write():
            raise NotLeaderError("jail: not the leader")
        self._began = self._clock.monotonic()
        try:
            return work(self._files)
        finally:
            self._began = None
