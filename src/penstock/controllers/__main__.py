"""`python -m penstock.controllers`: the operator's process."""

from __future__ import annotations

import asyncio
import logging
import sys

import structlog

from penstock.controllers.operator import run
from penstock.controllers.runtime.settings import parse


def main() -> None:
    """Parse arguments, set up JSON logs on standard output, run."""
    settings = parse(sys.argv[1:])
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[settings.log_level.upper()]
        ),
        cache_logger_on_first_use=True,
    )
    asyncio.run(run(settings))


if __name__ == "__main__":
    main()
