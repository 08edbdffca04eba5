"""Entry point of the jail-slurmd image: slurmd whose steps are in the jail (chroot.so).

slurmd takes its options from SLURMD_OPTIONS and the container's arguments, which are completed as
by the slurmd image. sshd runs beside it when /mnt/ssh-configs/sshd_config is a file.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import jail
import jail_mounts
import jail_sshd
import slurmd
import static_nodes
from journal import FOLDER
from options import words
from supervise import Program, always, say, supervise

SPOOL = Path("/var/spool/slurmd")
JOB_MOUNTS = Path("/run/penstock/job-mounts")
"""Where chroot.so finds which mounts to make for each job, in the form of its job_mounts.h."""
JOB_MOUNTS_VARIABLE = "PENSTOCK_JOB_MOUNTS"
JOB_FOLDERS = (Path("/tmp/.penstock-jobs"), Path("/dev/shm/.penstock-jobs"))  # noqa: S108 - see below
"""Where chroot.so has temporary files and memory of each job alone, as in its isolation.c.

No job runs yet when they are made, so nobody else can have made them.
"""
METADATA = Path("/run/soperator/node_metadata.env")
"""Where checks read the node's memory; slurmd does not hand its own environment on to them."""
REAL_MEMORY = "SOPERATOR_NODE_REAL_MEMORY_BYTES"
MIB = 1 << 20


def program(arguments: list[str]) -> Program:
    """Return slurmd for the supervisor, which is PID 1: slurmd leaves processes to reap."""
    options = words("SLURMD_OPTIONS", arguments)
    name = static_nodes.node_name(options)
    if "-Z" in options and name and static_nodes.is_static(name):
        say(f"slurm.conf names the node {name}: slurmd starts as that node")
        options = static_nodes.static_options(options)
    limited = any(slurmd.number(os.environ, name) for name in ("POD_CPUS", "POD_MEMORY"))
    found = slurmd.reserved(slurmd.hardware() if limited else {}, os.environ)
    argv = [slurmd.SLURMD, "--systemd", *slurmd.with_conf(options, found)]
    return Program("slurmd", argv, restart=slurmd.steps_run)


def write_job_mounts(path: Path, text: str) -> None:
    """Write the list of mounts for each job; no file without a mount."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if text:
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)


def reserve_job_folders(folders: Iterable[Path]) -> None:
    """Make the folders before a job can, and remove what a former container left in them."""
    for folder in folders:
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink(missing_ok=True)
        folder.mkdir(mode=0o700)


def write_metadata(path: Path, environ: Mapping[str, str]) -> None:
    """Write the memory of the node, as the variables of either shape have it."""
    memory = slurmd.number(environ, REAL_MEMORY)
    memory = memory or slurmd.number(environ, "SLURM_REAL_MEMORY") * MIB
    if memory:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.write_text(f"{REAL_MEMORY}={memory}\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Complete the jail and run the daemons; return the container's exit status."""
    for folder in (Path("/run/slurm"), SPOOL):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    jail.wait_until_filled()
    if jail.has_jail():
        try:
            jail_mounts.complete_here(jail.auth_folder(), str(SPOOL))
        except jail_mounts.MountError as error:
            say(f"the jail cannot be completed: {error}")
            return 1
    else:
        jail.use_own_root()
    if jail.has_jail():
        reserve_job_folders(JOB_FOLDERS)
    write_job_mounts(JOB_MOUNTS, os.environ.get(JOB_MOUNTS_VARIABLE, ""))
    write_metadata(METADATA, os.environ)
    # slurmctld has slurmd reconfigure, which then reads the copies again.
    jail.follow_keys("root", jail.prepare_auth(), lambda _: None)
    jail.wait_for_configuration()
    if not jail.has_jail():
        jail.follow_configuration()
    programs = [program(arguments)]
    if jail_sshd.CONFIG.exists():
        jail_sshd.warn_about_modes()
        programs.append(jail_sshd.program(restart=always))
    return supervise(programs, journal=FOLDER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
