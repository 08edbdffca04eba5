"""Entry point of the jail-login image: sshd whose users are in the jail; with auth/slurm sackd too.

The container's arguments and SSHD_OPTIONS are options of sshd, whose configuration is the file
/mnt/ssh-configs/sshd_config, and whose host keys are those that it names.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jail
import jail_mounts
import jail_sshd
from journal import FOLDER
from supervise import Program, say, supervise

USER = "slurm"
SACKD = "/usr/sbin/sackd"
ASK_SECONDS = 10.0
"""After which a sackd that has not read its keys is started again."""
REPORT_SECONDS = 60.0
"""Sessions fill the log, of which the operator reads the last lines."""


class SackdKeys:
    """Has sackd read changed keys, and reports those that it runs with."""

    def __init__(self, digest: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._running = self._asked = self._present = digest
        self._ask_at = self._report_at = 0.0

    def report(self) -> None:
        """Report the keys to the operator, which reads the last lines of this log."""
        self._report_at = self._clock() + REPORT_SECONDS
        if self._running:
            say(f"sackd has the keys {self._running}")

    def moved(self) -> None:
        """Note that sackd has reconfigured: its new process has read the keys."""
        if self._asked != self._running:
            self._running = self._asked
            self.report()

    def restarts(self) -> bool:
        """Note that sackd has ended: it is started again, with the present keys."""
        if self._running != self._present:
            self._running = self._asked = self._present
            self.report()
        return True

    def observe(self, digest: str) -> None:
        """Send SIGHUP to sackd until it runs with these keys, which a rotation has reported."""
        now, self._present = self._clock(), digest
        if digest != self._running:
            if digest != self._asked:
                self._asked, self._ask_at = digest, now + ASK_SECONDS
                os.kill(os.getpid(), signal.SIGHUP)
            elif now >= self._ask_at:
                self._ask_at = now + ASK_SECONDS
                say("sackd does not reconfigure; it is started again")
                kill_sackd()
        elif now >= self._report_at and is_rotating():
            self.report()


def kill_sackd() -> None:
    """End sackd. One that waits for a client may take no other signal."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if comm.read_text().strip() == "sackd":
                os.kill(int(comm.parent.name), signal.SIGKILL)


def is_rotating() -> bool:
    """Return whether two keys are valid now."""
    try:
        return jail.SLURM_JWKS_COPY.read_text().count('"kid"') > 1
    except FileNotFoundError:
        return False


def programs(arguments: list[str], digest: str) -> list[Program]:
    """Return sshd; with auth/slurm also the daemon that signs for users."""
    sshd = jail_sshd.program(arguments=arguments)
    if jail.has_munge():
        return [sshd]
    jail.wait_for_configuration()
    keys = SackdKeys(digest)
    keys.report()
    # Until the supervisor has its handlers, sackd is not there: it will read the new keys.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    jail.follow_keys(USER, digest, keys.observe)
    argv = [SACKD, "--systemd"]
    return [
        Program(
            "sackd", argv, user=USER, restart=keys.restarts, is_signalled=True, moved=keys.moved
        ),
        # Sessions would end with the process in front of sshd.
        replace(sshd, is_signalled=False),
    ]


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
    digest = jail.prepare_auth(USER)
    return supervise(programs(arguments, digest), journal=FOLDER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
