"""`python -m reference` writes docs/reference; `--check` exits with 1 where it is stale."""

from __future__ import annotations

import sys

from reference.pages import stale, write
from support.generated import run

STALE = "docs/reference/{name} differs from the code: run `make reference`"

sys.exit(run(sys.argv[1:], write, stale, STALE))
