"""Entry point of the slurmctld image.

slurmctld takes its options from SLURMCTLD_OPTIONS and the container's arguments. When it ends,
the container ends with its status: a configuration that slurmctld refuses shows as the
container's last words and in the kubelet's back-off, not as a loop inside.
"""

from __future__ import annotations

import sys
from pathlib import Path

from options import words
from supervise import Program, supervise


def main(arguments: list[str]) -> int:
    """Run slurmctld; return the container's exit status."""
    Path("/run/slurmctld").mkdir(parents=True, exist_ok=True)
    options = words("SLURMCTLD_OPTIONS", arguments)
    return supervise([Program("slurmctld", ["/usr/sbin/slurmctld", "--systemd", *options])])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
