"""`python -m penstock.controllers`: the operator's process."""

from __future__ import annotations

import asyncio
import gc
import sys


def main() -> None:
    """Parse arguments, set up JSON logs on standard output, run."""
    # All that is imported and built until the caches start lives as long as the process: to look
    # for garbage among it would take a tenth of the CPU of a start. `operator.run` enables it.
    gc.disable()
    from penstock.controllers.operator import run
    from penstock.controllers.runtime.logs import write_json_logs
    from penstock.controllers.runtime.settings import parse

    settings = parse(sys.argv[1:])
    write_json_logs(settings.log_level)
    asyncio.run(run(settings))


if __name__ == "__main__":
    main()
