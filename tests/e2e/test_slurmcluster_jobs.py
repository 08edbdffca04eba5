"""Jobs in the jail of a SlurmCluster: MPI, containers, a researcher's day, rejected lines.

Pyxis and enroot are stand-ins, as in `test_containers.py`.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e_kit import images as kit_images
from e2e_kit import registry
from e2e_kit.images import give_all
from e2e_kit.jail_containers import CACHE, IMAGE, INSIDE, Containers, with_pyxis
from e2e_kit.release import RELEASE, lacks, lines_of
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import NAME, SlurmClusterSite
from penstock.local.demo_login import Ssh, login, ssh_key
from penstock.local.images import build_jail
from penstock.local.recipes import LATEST
from penstock.local.target import BuiltIn

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/slurmcluster.yaml"
PEERS = ROOT / "tests/fixtures/mpi/peers_pmi2.py"
SCRIPT = ROOT / "examples/soperator/04-job-demo.sh"
USER = "alice"
LONG_S = 300.0
SMALL = "--mem=1M --cpus-per-task=1"
"""A job that takes no node alone."""
ACCOUNT = """set -e
useradd --create-home --shell /bin/bash {user}
install -d -o {user} -g {user} -m 700 /home/{user}/.ssh
echo '{key}' >/home/{user}/.ssh/authorized_keys
chown {user}: /home/{user}/.ssh/authorized_keys
"""

ARRAY = """#!/bin/bash
until [ -e results/go ]; do sleep 0.2; done
touch results/task_$SLURM_ARRAY_TASK_ID
"""
PARTITIONS = (
    "PartitionName=main Nodes=ALL Default=YES",
    # Each core runs so many of its jobs, as two workers have few.
    "PartitionName=batch Nodes=ALL OverSubscribe=FORCE:16",
)
TASKS, AT_ONCE = 1000, 50
GENOME = """#!/bin/bash
until [ -e go ]; do sleep 1; done
"""
APPLICATION = """#!/bin/bash
echo "task $SLURM_PROCID on $(hostname)"
"""

PYXIS = pytest.mark.needs_slurm("26.05", "the stand-in for Pyxis is built for the latest")

pytestmark = pytest.mark.timeout(600)


@dataclass
class Jailed:
    """A cluster with a user who has a key."""

    site: Site
    cluster: SlurmClusterSite

    def ssh(self, command: str, stdin: str = "") -> str:
        """Output of a command of the user on the login."""
        return self._client()(command, stdin)

    def terminal(self, command: str) -> str:
        """The same on a terminal."""
        client = self._client()
        client.command.insert(1, "-tt")
        return client(command)

    def _client(self) -> Ssh:
        service = f"{NAME}-login-svc"
        target = BuiltIn(self.site.node.name)
        with login(target, ssh_key(), self.cluster.namespace, service, USER) as found:
            return found

    def fetch(self, source: str, target: Path) -> None:
        """Copy a file of the jail by scp."""
        command = self._client().command
        port = command.index("-p")
        words = ["scp", *command[1:port], "-P", command[port + 1], f"{command[-1]}:{source}"]
        subprocess.run([*words, str(target)], check=True, timeout=60)

    def job(self, job: str) -> dict[str, Any]:
        """A job as slurmctld has it."""
        (found,) = json.loads(self.cluster.scontrol("show", "job", job, "--json"))["jobs"]
        return found


@pytest.fixture(scope="module")
def jailed(site: Site) -> Generator[Jailed]:
    images = give_all(site.node, build_jail(RELEASE).values())
    kit_images.load(site.node, registry.IMAGE)
    containers = None if lacks(LATEST.tag) else Containers()
    documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
    if containers is not None:
        with_pyxis(documents[-1]["spec"])
    partitions = {"configType": "custom", "rawConfig": list(PARTITIONS)}
    documents[-1]["spec"]["partitionConfiguration"] = partitions
    text, namespace = yaml.safe_dump_all(documents), f"jailed-{secrets.token_hex(2)}"
    made = SlurmClusterSite(site, namespace, text, images)
    try:
        made.up(beside=containers.beside() if containers is not None else "")
        if containers is not None:
            containers.install(made)
        key = ssh_key().with_suffix(".pub").read_text().strip()
        where = ("exec", "-i", "login-0", "-c", "sshd", "--", "chroot", "/mnt/jail", "sh")
        made.kubectl(*where, stdin=ACCOUNT.format(user=USER, key=key))
        yield Jailed(site, made)
    finally:
        made.down()


@pytest.fixture
def cluster(jailed: Jailed) -> SlurmClusterSite:
    return jailed.cluster


def test_a_plain_srun_runs_with_the_mpi_plug_in_that_the_image_has(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S137."""
    figure(f"from SlurmCluster to two idle workers: {cluster.start_s:.1f} s")
    eventually(
        "the MPI plug-in of the image is in force",
        lambda: "MpiDefault              = pmi2" in cluster.scontrol("show", "config"),
    )
    said = cluster.run("login-0", "sshd", "chroot /mnt/jail srun -N2 -l cat /etc/os-release")
    assert said.count("trixie") >= 2
    reason = "no plug-in mpi_pmix.so"
    eventually("the reason is told", lambda: reason in cluster.condition("Ready"))


def test_ranks_on_two_nodes_find_each_other_by_the_names_of_the_job(
    jailed: Jailed, cluster: SlurmClusterSite
) -> None:
    """S137: by PMI2, with one output file; the job waits with a reason while there is no room."""
    jailed.ssh("cat >peers.py", PEERS.read_text())
    jailed.ssh("cat >train.sh", "#!/bin/bash\nsrun python3 peers.py\n")
    blocks = jailed.ssh(f"sbatch --parsable -N2 --exclusive {SMALL} --wrap 'sleep 600'").strip()
    eventually("it runs", lambda: jailed.job(blocks)["job_state"] == ["RUNNING"])
    options = f"--ntasks=2 --nodes=2 {SMALL} --time=04:00:00 --output=training_%j.out"
    job = jailed.ssh(f"sbatch --parsable {options} ./train.sh").strip()
    eventually("it waits", lambda: jailed.job(job)["state_reason"] == "Resources")
    assert jailed.job(job)["job_state"] == ["PENDING"]
    jailed.ssh(f"scancel {blocks}")
    eventually("it ends", lambda: jailed.job(job)["job_state"] == ["COMPLETED"])
    said = lines_of(jailed.ssh(f"cat training_{job}.out"))
    hosts = {line.split()[5]: line.split()[1] for line in said}
    assert sorted(hosts) == ["worker-0", "worker-1"]
    names = {rank: name for name, rank in hosts.items()}
    assert sorted(said) == [
        f"rank 0 of 2 on {names['0']} reached 1 on {names['1']}",
        f"rank 1 of 2 on {names['1']} reached 0 on {names['0']}",
    ]


@PYXIS
def test_a_step_runs_in_a_container_below_the_jail_with_its_cache_on_a_sub_mount(
    jailed: Jailed, cluster: SlurmClusterSite
) -> None:
    """S102: in user namespaces alone, of a private registry; layers are fetched once per node."""
    registry.fill(cluster)
    command = f"srun --quiet -N2 {SMALL} --chdir=/tmp --container-image='{IMAGE}' "
    assert jailed.ssh(f"{command} cat /etc/os-release").splitlines() == [INSIDE] * 2
    for node in ("worker-0", "worker-1"):
        mounts = cluster.run(node, "slurmd", "cat /proc/mounts")
        assert f" /mnt/jail{CACHE} " in mounts
        assert cluster.run(node, "slurmd", f"ls -A /mnt/jail{CACHE}/*").strip()
    asked = len(registry.log(cluster))
    assert jailed.ssh(f"{command} id -u").split() == [jailed.ssh("id -u").strip()] * 2
    told = [line for line in registry.log(cluster)[asked:] if line.endswith(" 200")]
    assert {line.split("/")[-2] for line in told} == {"manifests"}
    assert cluster.run("worker-0", "slurmd", "ls /mnt/jail/run/pyxis /mnt/jail/tmp/enroot/*")


@PYXIS
def test_steps_get_the_interfaces_of_one_value_and_no_pod_restarts(
    jailed: Jailed, cluster: SlurmClusterSite
) -> None:
    """S178: in containers too, from the next job on; a shell of the login has none."""
    pods = ("controller-0", "login-0", "worker-0", "worker-1")
    before = [cluster.uid(pod) for pod in pods]
    step = f"srun --quiet -N2 {SMALL} --chdir=/tmp"

    def have(command: str) -> int:
        return jailed.ssh(command).splitlines().count("NCCL_SOCKET_IFNAME==eth0")

    assert have(f"{step} env") == 0
    cluster.patch({"jobNetworkInterfaces": ["eth0"]})
    eventually("steps have it", lambda: have(f"{step} env") == 2)
    assert have("env") == 0
    inside = f"{step} --container-image='{IMAGE}' cat /proc/self/environ"
    assert have(f"{inside} | tr '\\0' '\\n'") == 2
    assert "eth0" in jailed.ssh(f"{step} -N1 ls /sys/class/net").split()
    cluster.patch({"jobNetworkInterfaces": None})
    eventually("steps lack it", lambda: have(f"{step} env") == 0)
    assert [cluster.uid(pod) for pod in pods] == before


@PYXIS
def test_the_demos_script_of_jobs_runs_one_in_a_container(
    jailed: Jailed, cluster: SlurmClusterSite
) -> None:
    """S142: a file of squashfs in the jail stands for the registry."""
    save = f"--container-image='{IMAGE}' --container-save=/home/{USER}/app.sqsh"
    jailed.ssh(f"srun --quiet -N1 {SMALL} --chdir=/tmp {save} true")
    saved = f"unsquashfs -s /home/{USER}/app.sqsh >/dev/null 2>&1 && echo yes || true"
    eventually("it is saved", lambda: "yes" in jailed.ssh(saved))
    settings = {
        "NAMESPACE": cluster.namespace,
        "CLUSTER": NAME,
        "KUBE_CONTEXT": "",
        "SLURM_USER": USER,
        "CONTAINER_IMAGE": f"/home/{USER}/app.sqsh",
    }
    done = subprocess.run(
        ["bash", str(SCRIPT)],
        env={**os.environ, **jailed.site.node.env, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("is COMPLETED") == 2
    assert 'in the container: "an image for jobs"' in done.stdout


def test_an_array_of_a_thousand_tasks_completes_with_fifty_at_once(
    jailed: Jailed, figure: Callable[[str], None]
) -> None:
    """S138: less cpu and memory than declared there, in a partition of a raw line."""
    jailed.ssh("cat >genome_analysis.sh", GENOME)
    options = f"--array=1-{TASKS}%{AT_ONCE} {SMALL} --partition=batch -o /dev/null"
    job = jailed.ssh(f"sbatch --parsable {options} ./genome_analysis.sh").strip()
    every = f"squeue -h -r -t all -j {job} -o %T"

    def states() -> Counter[str]:
        return Counter(jailed.ssh(every).split())

    eventually("fifty run", lambda: states()["RUNNING"] == AT_ONCE, 60)
    jailed.ssh("touch go")
    began, most = time.monotonic(), 0
    while (found := states())["COMPLETED"] < TASKS:
        most = max(most, found["RUNNING"])
        assert set(found) <= {"PENDING", "RUNNING", "COMPLETING", "COMPLETED"}, found
        assert time.monotonic() - began < LONG_S, found
    took = time.monotonic() - began
    assert most <= AT_ONCE
    figure(f"{TASKS} tasks in {took:.0f} s, at most {most} of them at once")


def test_jobs_are_submitted_from_a_shell_of_the_login_container(
    cluster: SlurmClusterSite,
) -> None:
    """S134: it is outside the jail; a program of the jail is found where it is there."""
    program = shlex.quote(APPLICATION)
    cluster.session(f"printf %s {program} >my_application; chmod +x my_application")
    shell = (
        "cd /root && printf '#!/bin/bash\\nsrun ./my_application\\n' >job_script.sh && "
        f"sbatch --wait --ntasks=4 {SMALL} -o job.out job_script.sh && "
        f"srun --ntasks=4 {SMALL} ./my_application"
    )
    said = cluster.kubectl("exec", "login-0", "-c", "sshd", "--", "bash", "-c", shell)
    for output in (said, cluster.session("cat job.out")):
        tasks = [line.split()[1] for line in output.splitlines() if line.startswith("task ")]
        assert sorted(tasks) == ["0", "1", "2", "3"], output


def test_a_researchers_day(jailed: Jailed, cluster: SlurmClusterSite, tmp_path: Path) -> None:
    """S136: a shell on a worker, an array with a limit, sstat of a running step, and scp."""
    where = cluster.custom.replace("jobacct_gather/none", "jobacct_gather/linux")
    cluster.patch({"customSlurmConfig": where})
    active = "jobacct_gather/linux"
    eventually("it gathers", lambda: active in cluster.scontrol("show", "config"))
    shell = f"srun --quiet --pty --ntasks=1 {SMALL} bash -c 'hostname; tty'"
    said = " ".join(lines_of(jailed.terminal(shell))).split()
    assert (said[0].startswith("worker-"), said[1].startswith("/dev/pts/")) == (True, True), said
    jailed.ssh("mkdir results; head -c 5000000 /dev/urandom >results/data")
    jailed.ssh("cat >array_job.sh", ARRAY)
    array = f"sbatch --parsable -p batch --array=1-100%10 {SMALL} -o /dev/null array_job.sh"
    job = jailed.ssh(array).strip()
    listed = f"squeue -h -r -j {job} -o %T"
    eventually("ten tasks run", lambda: jailed.ssh(listed).split().count("RUNNING") == 10)
    limited = f"squeue -h -j {job} -t PENDING -o %r"
    eventually("others wait", lambda: "JobArrayTaskLimit" in jailed.ssh(limited))
    jailed.ssh("touch results/go")
    most = 0
    while states := jailed.ssh(listed).split():
        most = max(most, states.count("RUNNING"))
    assert most <= 10
    assert len(jailed.ssh("ls results/task_*").split()) == 100
    step = jailed.ssh(f"sbatch --parsable {SMALL} -o /dev/null --wrap 'srun sleep 600'").strip()
    usage = f"sstat -n -P -a -j {step} --format=JobID,MaxRSS,NTasks 2>/dev/null || true"
    eventually("sstat has numbers", lambda: f"\n{step}.0|" in f"\n{jailed.ssh(usage)}")
    line = next(one for one in jailed.ssh(usage).splitlines() if one.startswith(f"{step}.0|"))
    assert int(line.split("|")[2]) == 1
    jailed.ssh(f"scancel {step}")
    jailed.fetch("results/data", tmp_path / "data")
    assert (tmp_path / "data").stat().st_size == 5000000
    sums = subprocess.run(["sha256sum", str(tmp_path / "data")], capture_output=True, check=True)
    assert sums.stdout.split()[0].decode() in jailed.ssh("sha256sum results/data")
    cluster.patch({"customSlurmConfig": cluster.custom})
    eventually("it is applied", lambda: active not in cluster.scontrol("show", "config"))
    cluster.until_idle(2)


@pytest.mark.parametrize(
    ("line", "words", "key"),
    [
        ("TaskPluginParam=Cray_PrologSlurmctld", "Bad TaskPluginParam", "PrologSlurmctld"),
        ("JobContainerPlugin=contain", "unrecognized key: JobContainerPlugin", "JobContainerType"),
    ],
)
def test_a_line_that_is_no_option_is_rejected_with_the_nearest_key(
    cluster: SlurmClusterSite, line: str, words: str, key: str
) -> None:
    """S106: in slurmctld's words; the running cluster goes on."""
    before = cluster.uid("controller-0")
    cluster.patch({"customSlurmConfig": f"{cluster.custom}{line}\n"})
    eventually("it is rejected", lambda: words in cluster.condition("ConfigValid"))
    assert f"nearest key that Slurm has is {key}" in cluster.condition("ConfigValid")
    assert line not in cluster.run("login-0", "sshd", "cat /mnt/jail/etc/slurm/slurm*")
    assert "worker-" in cluster.run("login-0", "sshd", "chroot /mnt/jail srun hostname")
    cluster.patch({"customSlurmConfig": cluster.custom})
    eventually("it recovers", lambda: cluster.status("ConfigApplied") == "True")
    assert cluster.uid("controller-0") == before


def test_namespaces_of_jobs_are_rejected_as_steps_cannot_join_them(
    jailed: Jailed, cluster: SlurmClusterSite
) -> None:
    """S106: slurmctld would start with it, and no step would."""
    line = "JobContainerType=job_container/tmpfs\n"
    cluster.patch({"customSlurmConfig": f"{cluster.custom}{line}"})
    eventually("it is rejected", lambda: "in a jail" in cluster.condition("ConfigValid"))
    assert "worker-" in jailed.ssh("srun hostname")
    cluster.patch({"customSlurmConfig": cluster.custom})
    eventually("it recovers", lambda: cluster.status("ConfigApplied") == "True")
