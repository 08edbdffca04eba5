"""`python -m penstock.controllers`: the operator's process."""

from __future__ import annotations

import asyncio
import sys

from penstock.controllers.operator import run
from penstock.controllers.runtime.logs import write_json_logs
from penstock.controllers.runtime.settings import parse


def main() -> None:
    """Parse arguments, set up JSON logs on standard output, run."""
    settings = parse(sys.argv[1:])
    write_json_logs(settings.log_level)
    asyncio.run(run(settings))


if __name__ == "__main__":
    main()
