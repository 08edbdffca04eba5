"""Runs pytest, and files of tests on a real API server or node once more if they failed.

`python -m rerun ARGUMENTS` is what `make test` runs. Hundreds of tests share two cores with real
daemons, and a timeout among them proves little: its file runs again by itself, with everything
that it makes. A second failure is a failure, and ends the run. What passed then is printed as the
last thing, so that somebody looks at it. A test without an API server or a node has no second try,
and neither has a run in which many files failed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from support import child
from support.inotify_limit import raised_limit

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
"""Where pytest writes the names of the tests that failed."""
FOLDERS = ("tests/api/", "tests/e2e/")
MOST = 6
"""Files that failed; with more of them it is not the load."""
FAILED = 1
"""Exit status of pytest when tests failed, rather than the run."""


def files_again(failed: Iterable[str]) -> list[str]:
    """The files to run again, by the names of the tests that failed.

    None if one of them has no second try, or if they are too many.
    """
    files = sorted({one.partition("::")[0] for one in failed})
    live = all(one.startswith(FOLDERS) for one in files)
    return files if live and len(files) <= MOST else []


def main(arguments: Sequence[str]) -> int:
    LAST_FAILED.unlink(missing_ok=True)
    status = _pytest(arguments)
    if status != FAILED:
        return status
    failed: list[str] = sorted(json.loads(LAST_FAILED.read_text()))
    files = files_again(failed)
    if not files:
        return status
    print(f"\nOnce more, by themselves: {' '.join(files)}", flush=True)
    status = _pytest(["--exitfirst", *files])
    if status == 0:
        print("Failed once and passed when run by itself:")
        print("\n".join(f"  {one}" for one in failed), flush=True)
    return status


def _pytest(arguments: Sequence[str]) -> int:
    return child.run([sys.executable, "-m", "pytest", *arguments])


if __name__ == "__main__":
    with raised_limit():
        status = main(sys.argv[1:])
    raise SystemExit(status)
