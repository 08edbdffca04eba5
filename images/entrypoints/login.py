"""Entry point of the login image: sackd and sshd, and sssd when it has a configuration.

Options come from SACKD_OPTIONS, SSHD_OPTIONS and SSSD_OPTIONS; the container's arguments are
sackd's. The container ends when sackd or sshd ends; sssd is started again.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from journal import FOLDER
from options import words
from reach import before
from ssh import programs as ssh_programs
from supervise import Program, never, supervise

# sackd offers its socket here and keeps the configuration it fetched in conf/ beside it.
RUN = Path("/run/slurm")


def main(arguments: list[str]) -> int:
    """Run the daemons; return the container's exit status."""
    RUN.mkdir(mode=0o755, parents=True, exist_ok=True)
    shutil.chown(RUN, "slurm", "slurm")
    options = words("SACKD_OPTIONS", arguments)
    argv = before(["/usr/sbin/sackd", "--systemd", *options])
    sackd = Program("sackd", argv, user="slurm")
    return supervise([sackd, *ssh_programs(never)], journal=FOLDER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
