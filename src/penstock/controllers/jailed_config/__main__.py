"""`python -m penstock.controllers.jailed_config`: the process `sconfigcontroller`."""

from __future__ import annotations

import asyncio
import os
import sys

from penstock.controllers.jailed_config.arguments import parse
from penstock.controllers.jailed_config.process import run
from penstock.controllers.runtime.logs import write_json_logs


def main() -> None:
    """Parse arguments, set up JSON logs on standard output, run."""
    arguments = parse(sys.argv[1:])
    write_json_logs(arguments.log_level)
    # Folders that are created in the jail get exactly 0755.
    os.umask(0o022)
    asyncio.run(run(arguments))


if __name__ == "__main__":
    main()
