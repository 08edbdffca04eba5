"""Entry point of the slurmd image.

slurmd takes its options from SLURMD_OPTIONS and the container's arguments. The `--conf` of a
dynamic node is completed from the environment:

* POD_CPUS, cores the pod may use: the others of the host become CoreSpecCount;
* POD_MEMORY, MiB the pod may use: the rest of the host's memory becomes MemSpecLimit;
* POD_TOPOLOGY: becomes Topology.

What `--conf` already says stands. sshd runs when /etc/ssh/sshd_config is a mount, that is, when
the pod was given one; sssd beside it when it has a configuration.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from journal import FOLDER
from options import words
from reach import before
from ssh import programs as ssh_programs
from supervise import Program, always, say, supervise

SLURMD = "/usr/sbin/slurmd"
SSHD_CONFIG = Path("/etc/ssh/sshd_config")
PAM_SSHD = Path("/etc/pam.d/sshd")
ADOPT_OPTIONS = "action_adopt_failure=deny action_generic_failure=deny"
# One word of a node line; a value with spaces is in double quotes.
WORD = re.compile(r'(?:"[^"]*"|\S)+')


def node_conf(conf: str, wanted: Mapping[str, str]) -> str:
    """Complete the parameters of a dynamic node.

    A parameter without a value is dropped: slurmd would take the next word for its value.
    """
    given = [word for word in WORD.findall(conf) if not word.endswith("=")]
    present = {word.partition("=")[0].lower() for word in given}
    added = [f"{key}={value}" for key, value in wanted.items() if key.lower() not in present]
    return " ".join(given + added)


def with_conf(options: list[str], wanted: Mapping[str, str]) -> list[str]:
    """Return slurmd's options with the parameters of all its `--conf` completed."""
    rest: list[str] = []
    conf: list[str] = []
    values = iter(options)
    for option in values:
        if option == "--conf":
            conf.append(next(values, ""))
        elif option.startswith("--conf="):
            conf.append(option.removeprefix("--conf="))
        else:
            rest.append(option)
    # Parameters of a node line mean something for a dynamic node only.
    complete = node_conf(" ".join(conf), wanted if "-Z" in rest else {})
    return [*rest, "--conf", complete] if complete else rest


def reserved(hardware: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the pod's limits and annotations say about the node.

    `hardware` is the host as `slurmd -C` prints it.
    """
    wanted: dict[str, str] = {}
    cpus, memory = number(environ, "POD_CPUS"), number(environ, "POD_MEMORY")
    threads = int(hardware.get("ThreadsPerCore", "1"))
    cores = int(hardware.get("CPUs", "0")) // threads - -(-cpus // threads)
    if cpus and cores > 0:
        wanted["CoreSpecCount"] = str(cores)
    rest = int(hardware.get("RealMemory", "0")) - memory
    if memory and rest > 0:
        wanted["MemSpecLimit"] = str(rest)
    if topology := environ.get("POD_TOPOLOGY", "").strip():
        wanted["Topology"] = topology
    return wanted


def number(environ: Mapping[str, str], name: str) -> int:
    """Return a whole number of the environment, 0 when it is absent or none."""
    value = environ.get(name, "")
    return int(value) if value.isdecimal() else 0


def hardware() -> dict[str, str]:
    """Ask slurmd what this host has."""
    answer = subprocess.run([SLURMD, "-C"], capture_output=True, text=True, check=False)
    if answer.returncode:
        say(f"slurmd -C failed, limits are left out: {answer.stderr.strip()}")
    pairs = (word.partition("=") for word in WORD.findall(answer.stdout))
    return {key: value for key, _, value in pairs}


def steps_run() -> bool:
    """Tell whether job steps run here: they live on without slurmd, but not without the pod."""
    return any(
        read_or_empty(comm).startswith("slurmstepd") for comm in Path("/proc").glob("[0-9]*/comm")
    )


def read_or_empty(path: Path) -> str:
    """Return a file's text, or nothing when it has gone."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def is_mount(path: Path) -> bool:
    """Tell whether something is mounted at exactly this path."""
    mounts = read_or_empty(Path("/proc/self/mountinfo")).splitlines()
    return any(line.split()[4] == str(path) for line in mounts)


def ssh() -> list[Program]:
    """Return sshd and sssd when the pod was given an sshd_config, with access limited to jobs."""
    if not is_mount(SSHD_CONFIG):
        return []
    options = os.environ.get("PAM_SLURM_ADOPT_OPTIONS", ADOPT_OPTIONS)
    adopt = f"account required pam_slurm_adopt.so {options}".rstrip()
    lines = PAM_SSHD.read_text(encoding="utf-8").splitlines()
    if not any("pam_slurm_adopt.so" in line for line in lines):
        lines.insert(lines.index("@include common-account"), adopt)
        PAM_SSHD.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ssh_programs(always)


def main(arguments: list[str]) -> int:
    """Run the daemons; return the container's exit status."""
    for folder in ("/run/slurm", "/var/spool/slurmd"):
        Path(folder).mkdir(mode=0o755, parents=True, exist_ok=True)
    options = words("SLURMD_OPTIONS", arguments)
    limited = number(os.environ, "POD_CPUS") or number(os.environ, "POD_MEMORY")
    host = hardware() if limited else {}
    argv = [SLURMD, "--systemd", *with_conf(options, reserved(host, os.environ))]
    slurmd = Program("slurmd", before(argv), restart=steps_run)
    return supervise([slurmd, *ssh()], journal=FOLDER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
