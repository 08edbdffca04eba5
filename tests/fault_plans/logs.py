"""The operator's logs during plans: off, as they say too much, or on standard error."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

SILENT = 50


@contextmanager
def logging(*, show: bool) -> Generator[None]:
    """Set up structlog for the block, and as it was afterwards."""
    before = structlog.get_config()
    configure(show=show)
    try:
        yield
    finally:
        structlog.configure(**before)


def configure(*, show: bool) -> None:
    """Set up structlog for good."""
    structlog.configure(
        processors=[_simulated_time, structlog.dev.ConsoleRenderer(colors=False)],
        wrapper_class=structlog.make_filtering_bound_logger(0 if show else SILENT),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _simulated_time(
    _: object, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    event["event"] = f"{asyncio.get_running_loop().time():8.2f} {method} {event['event']}"
    return event
