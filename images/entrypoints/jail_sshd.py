"""sshd, with sessions in the jail if there is one: `jail_sshd.py CONFIG OPTIONS` runs it in front.

sshd has PID and mount namespaces of its own. So a session sees no daemon of the container, and root
in one cannot signal them. SYS_ADMIN and all else that sshd does not need is taken from it; what it
needs to change the root (SYS_CHROOT) is taken from sessions by pam_jail.so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from jail import JAIL, has_jail
from jail_mounts import KERNEL, Jail, Mount, MountError
from options import words
from supervise import Program, never, say

CONFIG = Path("/mnt/ssh-configs/sshd_config")
SSHD = "/usr/sbin/sshd"
ALWAYS = ("UsePAM=yes", f"ChrootDirectory={JAIL}", "PerSourcePenalties=no")
"""These go before the configuration: pam_jail.so needs PAM, and all users of a Service that
translates addresses come from one, which penalties would shut out together."""
OWN_ROOT = ("UsePAM=yes", "ChrootDirectory=none", "PerSourcePenalties=no")
"""The same for sshd whose sessions have the root of the container."""
KEPT = (
    *("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap"),
    *("net_bind_service", "audit_write", "setfcap", "sys_chroot"),
)
"""Those of a step in the jail (images/jail/chroot/capabilities.c), and SYS_CHROOT."""


def command(config: Path, options: Sequence[str]) -> list[str]:
    """Return sshd's command, with only the capabilities that it needs."""
    kept = ",".join(["-all", *(f"+{name}" for name in KEPT)])
    settings = [word for setting in ALWAYS for word in ("-o", setting)]
    return [
        *("setpriv", f"--bounding-set={kept}", "--inh-caps=-all", "--"),
        *(SSHD, "-D", "-e", "-f", str(config), *settings, *options),
    ]


def plain_command(config: Path, options: Sequence[str]) -> list[str]:
    """Return sshd's command where sessions have the root of the container."""
    settings = [word for setting in OWN_ROOT for word in ("-o", setting)]
    return [SSHD, "-D", "-e", "-f", str(config), *settings, *options]


def program(restart: Callable[[], bool] = never, arguments: Sequence[str] = ()) -> Program:
    """Return sshd for the supervisor."""
    options = words("SSHD_OPTIONS", arguments)
    if not has_jail():
        Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
        return Program("sshd", plain_command(CONFIG, options), restart=restart)
    argv = [sys.executable, "-B", __file__, str(CONFIG), *options]
    return Program("sshd", argv, restart=restart)


def warn_about_modes() -> None:
    """Log what sshd rejects with a word that no client shows: others may write to the root."""
    if not has_jail():
        return
    status = JAIL.stat()
    if status.st_uid or status.st_mode & 0o022:
        say(f"{JAIL} has owner {status.st_uid} and mode {status.st_mode & 0o7777:o}: sshd rejects")
        say(f"every session until it is root's and 755 (chown root {JAIL}; chmod 755 {JAIL})")


def main(arguments: Sequence[str]) -> int:
    """Run sshd as PID 1 of a namespace; return its exit status."""
    config = Path(arguments[0])
    if not config.exists():
        say(f"{config} is absent: mount the ConfigMap with sshd_config there")
        return 1
    Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
    if sys.version_info >= (3, 12):
        os.unshare(os.CLONE_NEWPID | os.CLONE_NEWNS)
    child = os.fork()
    if child == 0:
        enter(command(config, arguments[1:]))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: os.kill(child, number))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def enter(argv: list[str]) -> None:
    """Give the namespace its own /proc, also in the jail, and become sshd."""
    try:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
        jail = Jail()
        jail.mount(Mount("proc", kind="proc", options="nosuid,nodev,noexec"))
        for path in KERNEL:
            jail.mount(Mount(path, read_only=True, optional=True))
        os.execvp(argv[0], argv)
    except (MountError, OSError, subprocess.CalledProcessError) as error:
        say(f"sshd cannot start in the jail: {error}")
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
