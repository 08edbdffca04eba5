"""ssh as a user, with a key or with a password."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

KNOWN = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")


def make_key(folder: Path) -> tuple[Path, str]:
    """A new key in a folder, and its public half."""
    key = folder / "key"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(make, check=True)
    return key, key.with_suffix(".pub").read_text()


def ssh(
    key: Path, user: str, script: str, *, host: str, port: int = 22, password: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a script on a host: log in with the key, or with the password alone."""
    how = ("PreferredAuthentications=publickey", f"IdentityFile={key}", "BatchMode=yes")
    environment = dict(os.environ)
    if password:
        asked = key.parent / "askpass"
        asked.write_text(f"#!/bin/sh\necho '{password}'\n")
        asked.chmod(0o700)
        environment |= {"SSH_ASKPASS": str(asked), "SSH_ASKPASS_REQUIRE": "force"}
        how = ("PreferredAuthentications=password", "NumberOfPasswordPrompts=1")
    options = [word for one in (*KNOWN, *how, "ConnectTimeout=20") for word in ("-o", one)]
    return subprocess.run(
        ["ssh", *options, "-p", str(port), f"{user}@{host}", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
