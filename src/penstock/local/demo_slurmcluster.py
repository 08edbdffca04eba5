"""The demo of a SlurmCluster: from nothing, or beside the other demo, to jobs in the jail."""

import shlex
import subprocess
from pathlib import Path
from typing import cast

from penstock.base import yaml_text
from penstock.local import demo_objects, install, soperator
from penstock.local.demo_login import login, ssh_key
from penstock.local.errors import LocalError
from penstock.local.progress import Progress, default, step
from penstock.local.recipes import LOCAL, ROOT
from penstock.local.target import BuiltIn, Target

NAME = "correct-cpu-cluster"
NAMESPACE = NAME
EXAMPLE = "examples/slurmcluster.yaml"
SCRIPTS = "examples/soperator"
USER = "soperator"
"""Account of the jail that the demo makes."""
NODE_PORT = 30022
"""Port of ssh on each Kubernetes node of the built-in node."""
LOGIN = f"{NAME}-login-svc"
READY_S = 240
MOST_NODES = 2
"""Nodes that the demo's job runs on, where there are so many."""
_LOGIN_POD = ("login-0", "-c", "sshd")
_ACCOUNT = """set -e
id {user} >/dev/null 2>&1 || useradd --create-home --shell /bin/bash {user}
install -d -o {user} -g {user} -m 700 /home/{user}/.ssh
echo '{key}' > /home/{user}/.ssh/authorized_keys
chown {user}: /home/{user}/.ssh/authorized_keys
chmod 600 /home/{user}/.ssh/authorized_keys
"""
JOB = """#!/bin/bash
#SBATCH --job-name=hello --nodes={nodes} --ntasks-per-node=1 --time=10:00 --output=job_%j.out
. /etc/os-release
srun sh -c 'echo "hello from $(hostname), task $SLURM_PROCID of job $SLURM_JOB_ID, root $0"' \\
    "$VERSION_CODENAME"
"""
RUN = """set -e
cat > my_job.sh
id=$(sbatch --parsable --wait my_job.sh)
echo "job $id: $(scontrol show job "$id" | sed -n 's/.*JobState=\\([A-Z]*\\).*/\\1/p')"
cat "job_$id.out"
"""


def up(target: Target, progress: Progress = default, *, reset: bool = False) -> str:
    """Bring up the whole demo, run its scripts and return the job's output. Raises LocalError.

    Present objects stay, with what a user changed of them; `reset` reverts those changes. Deleted
    objects are created again.
    """
    target.up()
    images = target.load()
    prefix = target.load_jail()
    with step("installing the kinds and the operator"):
        soperator.put(target, images)
    key = ssh_key()
    with step("creating a SlurmCluster (2 workers)"):
        kept = demo_objects.apply(
            target,
            NAMESPACE,
            objects(prefix, NODE_PORT if isinstance(target, BuiltIn) else None),
            mark=install.SLURMCLUSTER_DEMO,
            reset=reset,
        )
        if kept:
            # Before the wait: what was changed may be why it never becomes available.
            found = ", ".join(kept)
            progress.report(f"kept as you changed it: {found} (RESET=1 or --reset reverts it)")
        wait_available(target)
        add_account(target, key)
    output = ""
    if workers := _workers(target):
        with login(target, key, NAMESPACE, LOGIN, USER) as ssh, step("running a job in the jail"):
            output = ssh(RUN, JOB.format(nodes=workers))
        progress.report("")
        print(output)
        if output.count("hello from") != workers:
            raise LocalError(f"The job should have run on {workers} nodes; its output: {output}")
    else:
        progress.report(f"no job is run: slurmcluster/{NAME} has no workers")
    for script in scripts():
        with step(f"running {script.relative_to(ROOT)}"):
            said = run_script(target, script)
        print(said)
    return output


def down(target: Target) -> None:
    """Take away what `up` made: the whole cluster when it is the demo's own and has no other."""
    other = target.running() and install.is_there(target)
    if not other and target.down():
        return
    with step("deleting the SlurmCluster"):
        if target.has("crd", "slurmclusters.slurm.nebius.ai"):
            # Its workers are drained by the operator, so that goes last.
            gone = ("--ignore-not-found", "--timeout=300s")
            target.kubectl("delete", "slurmcluster", NAME, "-n", NAMESPACE, *gone)
    with step("removing the operator of SlurmClusters"):
        soperator.remove(target)


def objects(prefix: str = LOCAL, node_port: int | None = NODE_PORT) -> list[install.Document]:
    """The example with the demo's port of ssh, and images of another prefix.

    Without a port Kubernetes chooses one: on a cluster of a user's it may be in use.
    """
    text = (ROOT / EXAMPLE).read_text().replace(f"{LOCAL}/", f"{prefix}/")
    found = [cast("install.Document", one) for one in yaml_text.documents(text)]
    for one in found:
        if one["kind"] == "SlurmCluster":
            one["metadata"]["name"] = NAME
            if node_port:
                one["spec"]["slurmNodes"]["login"]["sshdServiceNodePort"] = node_port
    return found


def wait_available(target: Target, seconds: int = READY_S) -> None:
    """Wait until all pods are ready; a failure names what is not, in the conditions' words."""
    cluster = f"slurmcluster/{NAME}"
    try:
        target.kubectl(
            "wait", "--for=condition=Ready", f"--timeout={seconds}s", "-n", NAMESPACE, cluster
        )
    except LocalError as error:
        query = '{range .status.conditions[?(@.status!="True")]}{.type}: {.message}{"\\n"}{end}'
        said = target.kubectl("get", cluster, "-n", NAMESPACE, "-o", f"jsonpath={query}")
        raise LocalError(f"{error}\n{said}") from error


def add_account(target: Target, key: Path) -> None:
    """Make the demo's user in the jail, who may log in with the key."""
    public = key.with_suffix(".pub").read_text().strip()
    command = ("exec", "-i", *_LOGIN_POD, "-n", NAMESPACE, "--", "chroot", "/mnt/jail", "sh")
    target.kubectl(*command, stdin=_ACCOUNT.format(user=USER, key=public))


def scripts() -> list[Path]:
    """The scripts that show the cluster, in their order."""
    return sorted((ROOT / SCRIPTS).glob("0*.sh"))


def run_script(target: Target, script: Path) -> str:
    """Output of a script. Raises LocalError with all that it printed if it fails."""
    context = target.arguments[-1] if target.arguments else ""
    env = {**target.env, "NAMESPACE": NAMESPACE, "CLUSTER": NAME, "KUBE_CONTEXT": context}
    done = subprocess.run(
        ["bash", str(script)],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LocalError(f"{script.name} failed ({done.returncode}):\n{done.stdout}")
    return done.stdout


def how_to_go_on(target: Target, key: Path) -> str:
    """What a user may type next."""
    kubectl = "kubectl" if not target.arguments else f"kubectl {' '.join(target.arguments)}"
    lines = ["Go on with:"]
    if isinstance(target, BuiltIn):
        lines.append(f"  export KUBECONFIG={target.node.kubeconfig_path}")
        with login(target, key, NAMESPACE, LOGIN, USER) as ssh:
            lines.append(f"  {shlex.join(ssh.command)}")
    patch = '{"spec":{"slurmNodes":{"worker":{"size":4}}}}'
    lines += [
        f"  {kubectl} patch slurmcluster {NAME} -n {NAMESPACE} --type=merge -p '{patch}'",
        f"  {kubectl} get slurmclusters -A",
        f"  {SCRIPTS}/01-check-cluster.sh",
        "  make down CLUSTER=slurmcluster",
    ]
    return "\n".join(lines)


def _workers(target: Target) -> int:
    """Nodes that the demo's job can have."""
    query = "jsonpath={.spec.slurmNodes.worker.size}"
    said = target.kubectl("get", "slurmcluster", NAME, "-n", NAMESPACE, "-o", query).strip()
    return min(MOST_NODES, int(said or 0))
