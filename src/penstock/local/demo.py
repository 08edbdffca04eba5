"""The demo: from a cluster, or from nothing, to a Slurm job's output."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from penstock.local import demo_objects, install
from penstock.local.demo_login import login, ssh_key
from penstock.local.errors import LocalError
from penstock.local.progress import Progress, default, step
from penstock.local.target import BuiltIn, Target

NAMESPACE = "slurm"
QUICKSTART = "examples/quickstart.yaml"
NODESET = "compute"
READY = ("controller/slurm", "restapi/slurm", f"nodeset/{NODESET}", "loginset/login")
LOGIN = "login"
"""Service of the logins."""
MOST_NODES = 2
"""Nodes that the demo's job runs on, where there are so many."""
JOB = """#!/bin/bash
#SBATCH --job-name=hello --nodes={nodes} --ntasks-per-node=1 --output=hello-%j.out
srun sh -c 'echo "hello from $(hostname), task $SLURM_PROCID of job $SLURM_JOB_ID"'
"""
RUN = """set -e
cat > hello.sh
id=$(sbatch --parsable --wait hello.sh)
out=$(scontrol show job "$id" | sed -n 's/.*StdOut=//p')
first=$(scontrol show job "$id" | sed -n 's/.*BatchHost=//p')
echo "job $id: $(scontrol show job "$id" | sed -n 's/.*JobState=\\([A-Z]*\\).*/\\1/p')"
srun --quiet --nodes=1 --nodelist="$first" cat "$out"
"""


@dataclass(frozen=True)
class Outcome:
    """What the demo showed."""

    output: str
    nodes: tuple[str, ...]
    """Names of the nodes that the job's output speaks of."""


def up(target: Target, progress: Progress = default, *, reset: bool = False) -> Outcome:
    """Bring up the whole demo. Raises LocalError.

    Present objects stay, with what a user changed of the Slurm cluster; `reset` reverts those
    changes. Deleted objects are created again.
    """
    target.up()
    images = target.load()
    with step("installing the kinds and the operator"):
        install.install(target, images)
    key = ssh_key()
    with step("creating a Slurm cluster (2 workers)"):
        public = key.with_suffix(".pub").read_text().strip()
        kept = quickstart(target, public, reset=reset)
        if kept:
            # Before the wait: what was changed may be why it never becomes ready.
            found = ", ".join(kept)
            progress.report(f"kept as you changed it: {found} (RESET=1 or --reset reverts it)")
        wait_ready(target)
    workers = _workers(target)
    if not workers:
        progress.report(f"no job is run: nodeset/{NODESET} has no replicas")
        return Outcome("", ())
    title = f"running a job on {'both nodes' if workers == MOST_NODES else 'the only node'}"
    with login(target, key, NAMESPACE, LOGIN) as ssh, step(title):
        output = ssh(RUN, JOB.format(nodes=workers))
        sinfo = ssh("sinfo -N -l")
    progress.report("")
    nodes = tuple(
        sorted(
            {line.split()[2].rstrip(",") for line in output.splitlines() if "hello from" in line}
        )
    )
    print(f"{output}\n{sinfo}")
    if len(nodes) != workers:
        raise LocalError(f"The job should have run on {workers} nodes; its output names {nodes}.")
    return Outcome(output, nodes)


def down(target: Target) -> None:
    """Take away what `up` made: the whole cluster when it is the demo's own."""
    if target.down():
        return
    with step("deleting the Slurm cluster"):
        if target.has("crd", "nodesets.slinky.slurm.net"):
            # Nodes are drained by the operator, so it goes last.
            names = [f"{one['kind']}/{one['metadata']['name']}" for one in _cluster()]
            gone = ("--ignore-not-found", "--timeout=300s")
            for name in sorted(names, key=lambda n: not n.startswith("NodeSet")):
                target.kubectl("delete", name, "-n", NAMESPACE, *gone)
    with step("removing the operator and its kinds"):
        install.remove(target)


def quickstart(target: Target, public_key: str, *, reset: bool = False) -> list[str]:
    """Apply the quickstart with a key for root in its LoginSet.

    Returns the fields that stay as somebody changed them: none with `reset`.
    """
    objects = _cluster()
    for one in objects:
        if one["kind"] == "LoginSet":
            one["spec"]["rootSshAuthorizedKeys"] = public_key
    return demo_objects.apply(target, NAMESPACE, objects, reset=reset)


def _workers(target: Target) -> int:
    """Nodes that the demo's job can have."""
    query = ("nodeset", NODESET, "-n", NAMESPACE, "-o", "jsonpath={.spec.replicas}")
    said = target.kubectl("get", *query).strip()
    return min(MOST_NODES, int(said)) if said else MOST_NODES


def wait_ready(target: Target, seconds: int = 180) -> None:
    """Wait for all four kinds; a failure names what is not ready, in the kind's own words."""
    try:
        target.kubectl(
            "wait", "--for=condition=Ready", f"--timeout={seconds}s", "-n", NAMESPACE, *READY
        )
    except LocalError as error:
        said = target.kubectl(
            "get",
            "controller,restapi,nodeset,loginset",
            "-n",
            NAMESPACE,
            "-o",
            "jsonpath={range .items[*]}{.kind}/{.metadata.name}: "
            '{.status.conditions[?(@.type=="Ready")].message}{"\\n"}{end}',
        )
        raise LocalError(f"{error}\n{said}") from error


def how_to_go_on(target: Target, key: Path) -> str:
    """What a user may type next."""
    kubectl = "kubectl" if not target.arguments else f"kubectl {' '.join(target.arguments)}"
    lines = ["What was made:"]
    made = target.kubectl("get", "controller,restapi,nodeset,loginset,pods", "-n", NAMESPACE)
    lines += [f"  {line}" for line in made.splitlines()]
    lines += ["", "Go on with:"]
    if isinstance(target, BuiltIn):
        lines.append(f"  export KUBECONFIG={target.node.kubeconfig_path}")
        with login(target, key, NAMESPACE, LOGIN) as ssh:
            lines.append(f"  {shlex.join(ssh.command)}")
    lines += [
        f"  {kubectl} scale nodeset/compute --replicas=4 -n {NAMESPACE}",
        f"  {kubectl} get nodeset -n {NAMESPACE} -o wide",
        "  make down",
    ]
    return "\n".join(lines)


def _cluster() -> list[install.Document]:
    return install.documents(QUICKSTART)
