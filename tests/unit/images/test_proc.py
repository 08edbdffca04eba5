"""When the kernel mounts a new /proc in a user namespace, as pods of workers have one."""

from __future__ import annotations

import os
import subprocess

import pytest

MASKED = """
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
"""
"""As container runtimes have it without `procMount: Unmasked`."""
MOUNT = "--pid --fork --kill-child --mount-proc true"
SCRIPTS = {"step": f"unshare {MOUNT}", "container": f"unshare --user --map-root-user {MOUNT}"}
SPACES = ("unshare", "--user", "--map-root-user", "--pid", "--mount-proc", "--fork", "--kill-child")


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
@pytest.mark.parametrize("before", ["", MASKED])
def test_a_container_in_a_pod_with_a_masked_proc_cannot_have_its_own(before: str) -> None:
    """S172: without it chroot.so can still give each step a /proc."""
    errors: dict[str, str] = {}
    for name, script in SCRIPTS.items():
        command = [*SPACES, "sh", "-ec", f"{before}\n{script}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        errors[name] = done.stderr.strip()
    denied = "unshare: mount /proc failed: Operation not permitted" if before else ""
    assert errors == {"step": "", "container": denied}
