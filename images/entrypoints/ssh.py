"""sshd and sssd, which the login and the worker image have in common."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from options import words
from sssd_lines import LEVEL, Lines, asks_for_level
from supervise import Program, always, say

SSHD = "/usr/sbin/sshd"
SSSD = "/usr/sbin/sssd"
HOST_KEYS = Path("/etc/ssh")
SSSD_CONF = Path("/etc/sssd/sssd.conf")


def programs(restart_sshd: Callable[[], bool]) -> list[Program]:
    """Return sshd, with host keys of the container's own where none are mounted, and sssd.

    sssd is left out without a configuration: it would only fail, again and again.
    """
    Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
    if not any(HOST_KEYS.glob("ssh_host_*_key")):
        subprocess.run(["/usr/bin/ssh-keygen", "-A"], stdout=subprocess.DEVNULL, check=True)
    found = [Program("sshd", [SSHD, "-D", "-e", *words("SSHD_OPTIONS", [])], restart=restart_sshd)]
    if not SSSD_CONF.exists():
        return found
    if not os.access(SSSD, os.X_OK):
        say(f"{SSSD_CONF} is there, but this image has no sssd: its users are unknown here")
        return found
    given = words("SSSD_OPTIONS", [])
    if asks_for_level(SSSD_CONF.read_text(encoding="utf-8", errors="replace"), given):
        return [*found, Program("sssd", [SSSD, "-i", *given], restart=always)]
    argv = [SSSD, "-i", "-d", LEVEL, *given]
    return [*found, Program("sssd", argv, restart=always, edit=Lines(SSSD_CONF))]
