"""`python -m penstock.controllers.rebooter`: the process `slurm-rebooter`."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.controllers.rebooter.arguments import parse
from penstock.controllers.rebooter.process import run
from penstock.controllers.runtime.logs import write_json_logs
from penstock.kube import ConfigError


def main(arguments: Sequence[str] | None = None, program: str = "rebooter") -> None:
    """Parse arguments, set up JSON logs on standard output, run."""
    given = parse(sys.argv[1:] if arguments is None else arguments, program=program)
    write_json_logs(given.log_level)
    with contextlib.suppress(OSError):
        # Users find the process by this name with ps and pgrep. Source: proc_pid_comm(5).
        Path("/proc/self/comm").write_text("slurm-rebooter")
    try:
        asyncio.run(run(given))
    except (ConfigError, OSError) as error:
        sys.exit(f"{program}: {error}")


if __name__ == "__main__":
    main()
