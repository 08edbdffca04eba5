"""`python -m dashboards` writes the chart's files; `--check` exits with 1 where one is stale."""

from __future__ import annotations

import sys

from dashboards.files import stale, write
from support.generated import run

STALE = "{name} of penstock-monitoring is stale: run `make dashboards`"

sys.exit(run(sys.argv[1:], write, stale, STALE))
