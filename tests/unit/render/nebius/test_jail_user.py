"""The script that runs the reconfigure sidecar with the configuration and the users of the jail.

Its commands are replaced by others that print themselves: the real ones would change the system
that runs the test.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.render.parts.script import script

PRINTS = ("rm", "ln", "install", "chown", "setpriv", "bash")
KEYS = {"JWT_KEY": "/mnt/rest-jwt-key/rest_jwt.key", "TRIAL_JWT_KEY": "/trial/key"}


def run(
    folder: Path,
    *,
    uid: int = 0,
    link: str = "",
    users: str = "slurm",
    later: str = "",
    found: str = "",
    user: str = "",
) -> list[str]:
    """The commands that run. The image has `users`, and `later` as well with the jail's files."""
    programs = {name: f'echo "{name} $*"' for name in PRINTS}
    programs["ln"] += f'\ncase $* in *passwd*) : >"{folder}/linked" ;; esac'
    programs["find"] = f"printf '{found}'"
    programs["readlink"] = f"echo {link}"
    programs["id"] = f"""
if [ "$*" = "-u" ]; then echo {uid}; exit 0; fi
known="{users}"
[ ! -e "{folder}/linked" ] || known="$known {later}"
case " $known " in *" $2 "*) echo 401 ;; *) exit 1 ;; esac"""
    for name, text in programs.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    for name in ("sed", "sort", "tr"):
        (folder / name).symlink_to(shutil.which(name) or name)
    command = ["/bin/bash", "-c", script("jail_user"), "reconfigure", "true"]
    done = subprocess.run(
        command,
        env={"PATH": str(folder), "PENSTOCK_SLURM_USER": user, **KEYS},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


AS_SLURM = [
    "install -o slurm -m 400 /mnt/rest-jwt-key/rest_jwt.key /trial/key",
    "chown slurm: /run/reconfigure",
    "setpriv --reuid=slurm --regid=slurm --init-groups -- bash -c true",
]
AS_ROOT = [AS_SLURM[0].replace("slurm", "root"), "bash -c true"]


def test_our_image_runs_the_script_as_slurm(tmp_path: Path):
    lines = run(tmp_path, link="/mnt/jail/etc/slurm")
    assert lines == AS_SLURM


def test_the_script_runs_as_root_where_slurmctld_does(tmp_path: Path):
    """D82."""
    assert run(tmp_path, link="/mnt/jail/etc/slurm", user="root") == AS_ROOT


def test_an_image_without_the_link_gets_it(tmp_path: Path):
    lines = run(tmp_path, link="/elsewhere")
    assert lines[:2] == ["rm -rf /etc/slurm", "ln -s /mnt/jail/etc/slurm /etc/slurm"]


@pytest.mark.parametrize("later", ["slurm", ""])
def test_users_of_the_jail_are_known_where_the_image_has_none(later: str, tmp_path: Path):
    lines = run(tmp_path, link="/mnt/jail/etc/slurm", users="root", later=later)
    assert lines[:2] == [
        "ln -sf /mnt/jail/etc/passwd /etc/passwd",
        "ln -sf /mnt/jail/etc/group /etc/group",
    ]
    assert lines[2:] == (AS_SLURM if later else AS_ROOT)


def test_a_container_without_root_runs_the_script_at_once(tmp_path: Path):
    assert run(tmp_path, uid=401) == ["bash -c true"]


def test_mpi_plug_ins_of_the_image_are_reported_once_each(tmp_path: Path):
    """S137: the folder may have a second name."""
    folders = ("/usr/lib/x86_64-linux-gnu/slurm-wlm", "/usr/lib/slurm")
    paths = [f"{folder}/mpi_{name}.so" for folder in folders for name in ("pmix_v5", "pmi2")]
    lines = run(tmp_path, uid=401, found="".join(f"{path}\\n" for path in paths))
    assert lines == ["penstock: mpi pmi2 pmix_v5", "bash -c true"]
