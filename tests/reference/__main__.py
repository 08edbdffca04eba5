"""`python -m reference` writes docs/reference; `--check` exits with 1 where it is stale."""

from __future__ import annotations

import sys

from reference.pages import stale, write


def main(arguments: list[str]) -> int:
    if arguments != ["--check"]:
        write()
        return 0
    found = list(stale())
    for name in found:
        sys.stderr.write(f"docs/reference/{name} differs from the code: run `make reference`\n")
    return 1 if found else 0


sys.exit(main(sys.argv[1:]))
