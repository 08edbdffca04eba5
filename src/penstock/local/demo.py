"""The demo: from a cluster, or from nothing, to a Slurm job's output."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.local import install, user_changes
from penstock.local.cache import cache_dir
from penstock.local.errors import LocalError
from penstock.local.progress import Progress, default, step
from penstock.local.target import BuiltIn, Target

NAMESPACE = "slurm"
QUICKSTART = "examples/quickstart.yaml"
NODESET = "compute"
READY = ("controller/slurm", "restapi/slurm", f"nodeset/{NODESET}", "loginset/login")
_IDENTITY = ("apiVersion", "kind", "metadata")
DECLARED = "penstock.dev/demo-declared"
"""Annotation with what the demo declared of an object when it applied it last."""
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
    with login(target, key) as ssh, step(title):
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
    objects: list[install.Document] = []
    kept: list[str] = []
    for one in _cluster():
        if one["kind"] == "LoginSet":
            one["spec"]["rootSshAuthorizedKeys"] = public_key
        found, paths = _as_changed(target, one, reset=reset)
        objects.append(found)
        kept += [f"{one['kind'].lower()}/{one['metadata']['name']} {path}" for path in paths]
    install.apply(target, [_namespace()])
    install.apply(target, objects, force=reset)
    return kept


def _as_changed(
    target: Target, declared: install.Document, *, reset: bool
) -> tuple[install.Document, tuple[str, ...]]:
    """An object to apply, with what users changed of it, and the paths of that."""
    kind, meta = declared["kind"].lower(), declared["metadata"]
    body = {key: declared[key] for key in declared if key not in _IDENTITY}
    noted = {DECLARED: json.dumps(body, sort_keys=True, separators=(",", ":"))}
    out = {
        **declared,
        "metadata": {**meta, "annotations": {**meta.get("annotations", {}), **noted}},
    }
    if reset:
        return out, ()
    query = (kind, meta["name"], "-n", NAMESPACE, "--ignore-not-found", "-o", "json")
    said = target.kubectl("get", *query)
    if not said.strip():
        return out, ()
    live = json.loads(said)
    # One that an earlier version made has no note: what differs then was changed by somebody.
    last = json.loads(live["metadata"].get("annotations", {}).get(DECLARED, "{}"))
    merged = user_changes.merge(body, last, live)
    return {**out, **merged.document}, merged.kept


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


def ssh_key() -> Path:
    """A private key for the demo's logins, made once."""
    key = cache_dir() / "demo-ssh" / "id_ed25519"
    if not key.exists():
        if shutil.which("ssh-keygen") is None:
            raise LocalError("ssh is not installed: apt-get install openssh-client.")
        key.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "penstock-demo", "-f", str(key)],
            check=True,
        )
    return key


class Ssh:
    """Runs commands in the login pod, over ssh as root."""

    def __init__(self, host: str, port: int, key: Path) -> None:
        self.command = [
            "ssh",
            "-q",
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "ConnectTimeout=10",
            "-i",
            str(key),
            "-p",
            str(port),
            f"root@{host}",
        ]

    def __call__(self, command: str, stdin: str = "") -> str:
        """Standard output. Raises LocalError with what went to standard error."""
        done = subprocess.run(
            [*self.command, command], input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LocalError(
                f"ssh to the login pod failed ({done.returncode}): "
                f"{done.stderr.strip() or done.stdout.strip() or 'no answer'}"
            )
        return done.stdout


@contextmanager
def login(target: Target, key: Path) -> Generator[Ssh]:
    """A way into the login pod: directly on the built-in node, else through kubectl."""
    if isinstance(target, BuiltIn):
        address = target.kubectl(
            "get", "service", "login", "-n", NAMESPACE, "-o", "jsonpath={.spec.clusterIP}"
        )
        yield Ssh(address, 22, key)
        return
    forward = ["port-forward", "-n", NAMESPACE, "service/login", ":22", "--address=127.0.0.1"]
    with (
        TemporaryDirectory() as folder,
        (Path(folder) / "errors").open("w+") as errors,
        subprocess.Popen(
            target.command(*forward),
            env=target.env,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            line = process.stdout.readline() if process.stdout else ""
            port = line.rpartition(" -> ")[0].rpartition(":")[2]
            if not port.isdigit():
                errors.seek(0)
                raise LocalError(f"kubectl port-forward failed: {errors.read().strip()}")
            yield Ssh("127.0.0.1", int(port), key)
        finally:
            process.terminate()


def how_to_go_on(target: Target, key: Path) -> str:
    """What a user may type next."""
    kubectl = "kubectl" if not target.arguments else f"kubectl {' '.join(target.arguments)}"
    lines = ["What was made:"]
    made = target.kubectl("get", "controller,restapi,nodeset,loginset,pods", "-n", NAMESPACE)
    lines += [f"  {line}" for line in made.splitlines()]
    lines += ["", "Go on with:"]
    if isinstance(target, BuiltIn):
        lines.append(f"  export KUBECONFIG={target.node.kubeconfig_path}")
        with login(target, key) as ssh:
            lines.append(f"  {shlex.join(ssh.command)}")
    lines += [
        f"  {kubectl} scale nodeset/compute --replicas=4 -n {NAMESPACE}",
        f"  {kubectl} get nodeset -n {NAMESPACE} -o wide",
        "  make down",
    ]
    return "\n".join(lines)


def _cluster() -> list[install.Document]:
    return install.documents(QUICKSTART)


def _namespace() -> install.Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
