"""The wheel and the source distribution, and what the wheel depends on."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from penstock.local.cache import cache_dir
from penstock.local.errors import LocalError
from release.epoch import ROOT
from release.sbom import Package

_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)


def build(folder: Path, epoch: int) -> Path:
    """Write wheel and source distribution; returns the wheel. Raises LocalError."""
    uv = max(cache_dir().glob("uv-*/bin/uv"), default=None)
    if uv is None:
        raise LocalError("uv is not in the cache: run `make venv`")
    done = subprocess.run(
        [str(uv), "build", "-q", "--out-dir", str(folder.absolute()), str(ROOT)],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LocalError(f"uv build: {done.stderr.strip()}")
    (folder / ".gitignore").unlink(missing_ok=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def locked() -> list[Package]:
    """What the operator runs with, as it is locked."""
    text = (ROOT / "requirements/operator.txt").read_text(encoding="utf-8")
    return [Package("pypi", one["name"], one["version"]) for one in _PINNED.finditer(text)]
