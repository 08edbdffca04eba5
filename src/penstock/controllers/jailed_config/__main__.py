"""`python -m penstock.controllers.jailed_config`: the process `sconfigcontroller`."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

import structlog

from penstock.controllers.jailed_config.arguments import parse
from penstock.controllers.jailed_config.process import run


def main() -> None:
    """Parse arguments, set up JSON logs on standard output, run."""
    arguments = parse(sys.argv[1:])
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[arguments.log_level.upper()]
        ),
        cache_logger_on_first_use=True,
    )
    # Folders that are created in the jail get exactly 0755.
    os.umask(0o022)
    asyncio.run(run(arguments))


if __name__ == "__main__":
    main()
