"""The time that files of a release have: that of the commit, so that two runs are the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from penstock.local.errors import LocalError

ROOT = Path(__file__).parents[1]


def commit_time() -> int:
    """`$SOURCE_DATE_EPOCH`, or the time of the last commit, in Unix seconds.

    Raises LocalError outside a repository. Source: reproducible-builds.org, SOURCE_DATE_EPOCH.
    """
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalError("this is no git repository: set SOURCE_DATE_EPOCH to Unix seconds")
    return int(done.stdout)
