"""Entry point of the jail-login image: sshd whose users are in the jail; with auth/slurm sackd too.

The container's arguments and SSHD_OPTIONS are options of sshd, whose configuration is the file
/mnt/ssh-configs/sshd_config, and whose host keys are those that it names.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import jail
import jail_mounts
import jail_sshd
from journal import FOLDER
from supervise import Program, always, say, supervise

USER = "slurm"
SACKD = "/usr/sbin/sackd"


def sackd() -> list[Program]:
    """Return the daemon that signs for users with auth/slurm; with munge there is none."""
    if jail.has_munge():
        return []
    jail.wait_for_configuration()
    return [Program("sackd", [SACKD, "--systemd"], user=USER, restart=always)]


def main(arguments: list[str]) -> int:
    """Complete the jail and run sshd; return the container's exit status."""
    if not jail.has_munge():
        Path(jail.SLURM_RUN).mkdir(mode=0o755, parents=True, exist_ok=True)
        shutil.chown(jail.SLURM_RUN, USER, USER)
    jail.wait_until_filled()
    if jail.has_jail():
        try:
            jail_mounts.complete_here(jail.auth_folder())
        except jail_mounts.MountError as error:
            say(f"the jail cannot be completed: {error}")
            return 1
    else:
        jail.use_own_root()
    jail_sshd.warn_about_modes()
    jail.prepare_auth(USER)
    return supervise([*sackd(), jail_sshd.program(arguments=arguments)], journal=FOLDER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
