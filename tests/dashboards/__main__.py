"""`python -m dashboards` writes the chart's files; `--check` exits with 1 where one is stale."""

from __future__ import annotations

import sys

from dashboards.files import stale, write


def main(arguments: list[str]) -> int:
    if arguments != ["--check"]:
        write()
        return 0
    found = list(stale())
    for name in found:
        sys.stderr.write(f"{name} of penstock-monitoring is stale: run `make dashboards`\n")
    return 1 if found else 0


sys.exit(main(sys.argv[1:]))
