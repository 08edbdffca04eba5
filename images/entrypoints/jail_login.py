"""Entry point of the jail-login image: sshd whose users are in the jail.

The container's arguments and SSHD_OPTIONS are options of sshd, whose configuration is the file
/mnt/ssh-configs/sshd_config, and whose host keys are those that it names.
"""

from __future__ import annotations

import sys

import jail
import jail_mounts
import jail_sshd
from journal import FOLDER
from supervise import say, supervise


def main(arguments: list[str]) -> int:
    """Complete the jail and run sshd; return the container's exit status."""
    jail.wait_until_filled()
    if jail.has_jail():
        try:
            jail_mounts.complete_here(str(jail.munge_socket()))
        except jail_mounts.MountError as error:
            say(f"the jail cannot be completed: {error}")
            return 1
    else:
        jail.use_own_root()
    jail_sshd.warn_about_modes()
    jail.wait_for_munge()
    return supervise([jail_sshd.program(arguments=arguments)], journal=FOLDER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
