"""Reports of daemons about the keys that they have read, parsed from the logs of their containers.

A report has the SHA-256 of slurm.jwks. render/shell/reconfigure_keys.sh and the entry point of the
login image write the lines.
"""

from __future__ import annotations

import hashlib
import re

_LINE = re.compile(r"penstock: (?:sackd has the )?keys ([0-9a-f]{64})")


def digest(slurm_jwks: str) -> str:
    """The SHA-256 of a file slurm.jwks."""
    return hashlib.sha256(slurm_jwks.encode()).hexdigest()


def reported(log: str) -> str:
    """The digest in the last report of a log; empty without one."""
    found = [match for line in log.split("\n") if (match := _LINE.fullmatch(line))]
    return found[-1][1] if found else ""
