"""sysctl.conf and supervisord.conf of workers, as images of the original read them.

Source: sysctl.conf(5), and supervisord's documentation of its configuration file.
"""

from __future__ import annotations

from typing import Final

SYSCTL_CONF: Final = "vm.max_map_count=655300\n"

_SUPERVISORD: Final = {
    "nodaemon": "true",
    "logfile": "/dev/null",
    "logfile_maxbytes": "0",
    "pidfile": "/var/run/supervisord.pid",
}
_PROGRAMS: Final = {
    "slurmd": {"priority": "1", "command": "/opt/bin/slurm/slurmd_entrypoint.sh"},
    "sshd": {"priority": "10", "command": "/usr/sbin/sshd -D -e -f /mnt/ssh-configs/sshd_config"},
}
_COMMON: Final = {
    "stdout_logfile": "/dev/fd/1",
    "stdout_logfile_maxbytes": "0",
    "stderr_logfile": "/dev/fd/2",
    "stderr_logfile_maxbytes": "0",
    "redirect_stderr": "true",
    "autostart": "true",
    "autorestart": "true",
    "startsecs": "0",
    "stopasgroup": "true",
    "killasgroup": "true",
    "stopsignal": "SIGTERM",
    "stopwaitsecs": "10",
}


def supervisord_conf() -> str:
    """Slurmd and sshd as programs of one container."""
    sections = {"supervisord": _SUPERVISORD}
    sections |= {f"program:{name}": own | _COMMON for name, own in _PROGRAMS.items()}
    return "\n".join(
        "".join([f"[{name}]\n", *(f"{key}={value}\n" for key, value in values.items())])
        for name, values in sections.items()
    )
