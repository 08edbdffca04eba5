"""A worker's container as a folder, in which the runner and the shipped checks run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CHECKS = Path(__file__).parents[2] / "images/checks"
SCONTROL = """#!/bin/bash
# Stands in for scontrol: the node is a folder of files.
cd "$SLURM_NODE" || exit 1
echo "$*" >>calls
[ ! -e refuse ] || { echo 'slurm_load_node error: Unable to contact slurm controller' >&2; exit 1; }
if [ "$1" = show ]; then
    [ "$#" != 2 ] || [ ! -e others ] || cat others
    printf 'NodeName=worker-0 Arch=x86_64\\n   RealMemory=%s AllocMem=0\\n' "$(cat memory)"
    printf '   State=%s ThreadsPerCore=1\\n' "$(cat state)"
    [ ! -s comment ] || printf '   Comment=%s\\n' "$(cat comment)"
    [ ! -s reason ] || printf '   Reason=%s [root@2026-01-01T00:00:00]\\n' "$(cat reason)"
    exit 0
fi
for word in "$@"; do
    case $word in
    State=DRAIN)
        echo IDLE+DRAIN >state
        [ ! -e meanwhile ] || cat meanwhile >>others
        ;;
    State=UNDRAIN) echo IDLE >state; : >reason ;;
    Reason=*) printf %s "${word#*=}" >reason ;;
    Comment=*) printf %s "${word#*=}" >comment ;;
    esac
done
"""


@dataclass
class Worker:
    """A container: `root` below which checks find their files, `bin` with stand-in commands."""

    root: Path
    bin: Path
    node: Path
    seconds: float = 6.5

    def command(self, name: str, output: str = "", status: int = 0) -> None:
        """Have a command print a file's text and exit."""
        text = self.root / f"{name}.txt"
        text.write_text(output)
        path = self.bin / name
        path.write_text(f"#!/bin/sh\ncat {text}\nexit {status}\n")
        path.chmod(0o755)

    def file(self, path: str, text: str) -> Path:
        """Write a file of the container."""
        found = self.root / path
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_text(text)
        return found

    def drain(self, reason: str) -> None:
        """Have the node drained with a reason."""
        (self.node / "state").write_text("IDLE+DRAIN\n")
        (self.node / "reason").write_text(reason)

    def others(self, *drained: str, meanwhile: str = "", idle: int = 0) -> None:
        """Have other nodes: drained ones with these reasons, and idle ones.

        Another one is drained when this node is.
        """
        found = [_record(f"a-{at}", reason) for at, reason in enumerate(drained)]
        found += [_record(f"idle-{at}") for at in range(idle)]
        (self.node / "others").write_text("".join(found))
        if meanwhile:
            (self.node / "meanwhile").write_text(_record("meanwhile", meanwhile))

    @property
    def state(self) -> str:
        return (self.node / "state").read_text().strip()

    @property
    def reason(self) -> str:
        return (self.node / "reason").read_text()

    @property
    def calls(self) -> list[str]:
        """Calls of scontrol."""
        path = self.node / "calls"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def log(self) -> str:
        """The container's log."""
        return (self.root / "log").read_text()

    def output(self, context: str) -> str:
        """The runner's lines of its last run."""
        folder = self.root / "mnt/jail/opt/soperator-outputs/local/slurm_scripts"
        return (folder / f"worker-0.check_runner.{context}.out").read_text()

    def shipped(self, *scripts: str) -> None:
        """Have entries of the catalogue as the configuration."""
        entries = [json.loads((CHECKS / f"entries/{one}.json").read_text()) for one in scripts]
        self.configure(json.dumps(entries))

    def configure(self, text: str) -> None:
        """Have a text as checks.json."""
        self.file("opt/slurm_scripts/checks.json", text)

    def run(self, context: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run the checks as the wrapper scripts do."""
        code = (
            "import os, sys; from pathlib import Path; import check_runner as r; "
            "p = r.Places(Path(sys.argv[1]), ('bash', '-c'), Path(sys.argv[1], 'log'),"
            " float(sys.argv[2]), 0.0);"
            "sys.exit(r.main((), os.environ, p))"
        )
        base = "/opt/soperator-outputs/local"
        output = f"/mnt/jail{base}/slurm_scripts/worker-0.check_runner.{context}.out"
        environ = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(CHECKS / "runner"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SLURMD_NODENAME": "worker-0",
            "SLURM_NODE": str(self.node),
            "CHECKS_CONTEXT": context,
            "CHECKS_CONFIG": str(self.root / "opt/slurm_scripts/checks.json"),
            "CHECKS_OUTPUTS_BASE_DIR": base,
            "CHECKS_RUNNER_OUTPUT": output,
            "CHECKS_ROOT": str(self.root),
            **more,
        }
        return subprocess.run(
            [sys.executable, "-c", code, str(self.root), str(self.seconds)],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )


def _record(name: str, reason: str = "") -> str:
    """A node as `scontrol show node` prints it; the reason has its user and time."""
    state = "IDLE+DRAIN" if reason else "IDLE"
    text = f"NodeName={name} Arch=x86_64\n   State={state} ThreadsPerCore=1\n"
    return f"{text}   Reason={reason}\n\n" if reason else f"{text}\n"


def new_worker(folder: Path) -> Worker:
    """A container in a folder, on a node that is idle."""
    root, node = folder / "root", folder / "node"
    shutil.copytree(CHECKS / "scripts", root / "opt/slurm_scripts")
    for name in ("mnt/jail/usr", "mnt/jail/opt", "bin", "proc/driver"):
        (root / name).mkdir(parents=True)
    (root / "log").touch()
    node.mkdir()
    for name, text in {"state": "IDLE", "reason": "", "comment": "", "memory": "4096"}.items():
        (node / name).write_text(text)
    made = Worker(root, root / "bin", node)
    scontrol = made.bin / "scontrol"
    scontrol.write_text(SCONTROL)
    scontrol.chmod(0o755)
    return made
