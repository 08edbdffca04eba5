"""The init container of sconfigcontroller, which creates the folder of its files in the jail."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.render.nebius.cluster import sconfigcontroller
from support.nebius_clusters import CURRENT, of_shape

NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="files change their owner")
@pytest.mark.parametrize("user", [0, NOBODY])
def test_root_alone_gives_the_folder_to_the_writer(tmp_path: Path, user: int) -> None:
    """S172."""
    made = sconfigcontroller.deployment(of_shape(CURRENT).inputs)
    (init,) = made["spec"]["template"]["spec"]["initContainers"]
    assert init["securityContext"] == {"runAsUser": 0}
    path = tmp_path / "slurm"
    path.mkdir()
    os.chown(path, user, user)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)
    env = {one["name"]: one["value"] for one in init["env"]} | {"JAIL_CONFIG_PATH": str(path)}
    command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *init["command"]]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    owner = path.stat().st_uid
    if user:
        assert "Operation not permitted" in done.stderr
        assert (done.returncode, owner) == (1, user)
    else:
        assert (done.returncode, owner) == (0, int(env["JAIL_UID"])), done.stderr
