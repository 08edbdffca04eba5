"""`python -m penstock.controllers.exporter`: the process `soperator-exporter`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import prometheus_client

from penstock.controllers.exporter.arguments import parse
from penstock.controllers.exporter.process import run
from penstock.controllers.runtime.logs import write_json_logs
from penstock.kube import ConfigError


def main(arguments: Sequence[str] | None = None, program: str = "soperator-exporter") -> None:
    """Parse arguments, set up JSON logs on standard output, run."""
    given = parse(sys.argv[1:] if arguments is None else arguments, program=program)
    write_json_logs(given.log_level)
    # Counters would have a series more each, which the published names lack.
    prometheus_client.disable_created_metrics()
    try:
        asyncio.run(run(given))
    except (ConfigError, OSError) as error:
        sys.exit(f"{program}: {error}")


if __name__ == "__main__":
    main()
