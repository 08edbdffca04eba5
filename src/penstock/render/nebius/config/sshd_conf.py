"""sshd_config and authorized_keys of logins and workers. Source: sshd_config(5)."""

from __future__ import annotations

from typing import Final

from penstock.api.nebius.slurm_nodes import LoginNode
from penstock.render.nebius.config.lines import one_line
from penstock.render.nebius.config.plugstack_conf import JAIL
from penstock.render.parts.sshd_config import sshd_config
from penstock.slurm.daemons import SSH_PORT

_KEYS: Final = "/etc/ssh/sshd_keys"
_BEFORE_SSSD: Final = (
    "PermitRootLogin yes",
    "PasswordAuthentication no",
    "ChallengeResponseAuthentication no",
    "UsePAM yes",
    "AcceptEnv LANG LC_*",
    "X11Forwarding no",
    "AllowTcpForwarding yes",
    "Subsystem sftp internal-sftp",
    *(f"HostKey {_KEYS}/ssh_host_{kind}_key" for kind in ("rsa", "ecdsa", "ed25519")),
    f"ChrootDirectory {JAIL}",
    "ClientAliveInterval 3600",
    "ClientAliveCountMax 5",
    "MaxStartups 100:50:300",
    "LoginGraceTime 120",
    "MaxAuthTries 4",
    # Keys are read before the root changes, so the jail's have its path.
    f"AuthorizedKeysFile .ssh/authorized_keys {JAIL}/%h/.ssh/authorized_keys",
)
_SSSD: Final = (
    "AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys",
    "AuthorizedKeysCommandUser root",
)
_ROOT: Final = (
    "Match User root",
    f"    AuthorizedKeysFile /root/.ssh/authorized_keys {JAIL}/root/.ssh/authorized_keys",
)


def cluster_sshd_config(login: LoginNode, *, has_jail: bool) -> str:
    """The file of logins and workers: a worker too has the port and the sssd of the login."""
    sssd = _SSSD if login.sssd is not None else ()
    ours = (f"Port {login.sshd.port or SSH_PORT}", *_BEFORE_SSSD, *sssd, "LogLevel INFO")
    if has_jail:
        return sshd_config(ours, "\n".join(_ROOT))
    # sshd's own defaults are right for sessions in the container's root.
    return sshd_config((line for line in ours if JAIL not in line), "")


def authorized_keys(login: LoginNode) -> str:
    """Public keys of root, one a line."""
    found = (one_line(key) for key in login.ssh_root_public_keys)
    return "".join(f"{key}\n" for key in found if key)
