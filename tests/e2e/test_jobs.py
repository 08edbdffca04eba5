"""What users do with jobs: batch scripts, their limits and GPUs, and where output is.

Scenarios S039 to S041; defect D30; feature row 55. Of two clusters, `shared` is in a namespace that
enforces the pod security level `baseline`; its workers are called as the chart calls them, and have
a claim at the same path as its login. `held` has privileged workers whose jobs are held to what
they asked for by control groups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.cluster import Cluster
from e2e_kit.release import lacks
from e2e_kit.site import eventually
from penstock.api.slinky import labels as slinky_labels
from penstock.local.errors import LocalError

LONG_S = 180.0
ENFORCE = "pod-security.kubernetes.io/enforce"
LEAST: Json = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
PROFILE: Json = {"spec": {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}}
"""With both, slurmctld and slurmrestd fit the level `restricted`."""
WORKERS = "slurm-worker-slinky"
VOLUMES: list[Json] = [{"name": "share", "persistentVolumeClaim": {"claimName": "share"}}]
MOUNTS: list[Json] = [{"name": "share", "mountPath": "/shared"}]

CONTROLLED = """ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
GresTypes=gpu
"""
CGROUP_CONF = """CgroupPlugin=autodetect
IgnoreSystemd=yes
ConstrainRAMSpace=yes
ConstrainDevices=yes
"""
GPUS = "AutoDetect=off\nName=gpu File=/dev/nvidia[0-1]\n"
DEVICES = {"nvidia0": "/dev/zero", "nvidia1": "/dev/full"}
BATCH = """#SBATCH --nodes=2
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=01:00:00
#SBATCH --gres=gpu:1
#SBATCH --output=/shared/batch
echo "$SLURM_JOB_GPUS"
srun sh -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES'
"""
ONE_GPU = """has=$(for gpu in 0 1; do head -c 1 /dev/nvidia$gpu >/dev/null 2>&1 && echo $gpu; done)
echo "$SLURM_JOB_GPUS" $has
until [ -e /shared/seen ]; do sleep 0.2; done
"""
# Without CAP_SYS_RESOURCE slurmstepd cannot make itself the last that the kernel ends.
HOG = """echo 1000 >/proc/self/oom_score_adj
exec python3 -c 'x = b"x" * (200 << 20)'
"""

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Shared:
    """A cluster whose login and workers share a claim, and a job that is there for too long."""

    cluster: Cluster
    late: int

    def login(self, script: str) -> str:
        """A shell script in the login pod, as root."""
        return self.cluster.kubectl("exec", "deploy/login", "-c", "login", "--", "sh", "-c", script)

    def sbatch(self, script: str, *options: str) -> int:
        """Submit a batch script in the login pod; its output is `/shared/JOB.out`."""
        return sbatch(self.cluster, script, *options)

    def output(self, job: int) -> list[str]:
        """Lines of a job's output, as the login sees it."""
        return self.login(f"cat /shared/{job}.out").splitlines()


def sbatch(cluster: Cluster, script: str, *options: str) -> int:
    command = ("sbatch", "--parsable", "--mem=50", "--chdir=/shared", "--output=/shared/%j.out")
    where = ("exec", "-i", "deploy/login", "-c", "login", "--")
    return int(cluster.kubectl(*where, *command, *options, stdin=f"#!/bin/sh\n{script}\n"))


def share() -> Json:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "64Mi"}}}
    meta = {"name": "share"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def unprivileged() -> Json:
    """Two workers without rights that `baseline` refuses."""
    context: Json = {"privileged": False, "capabilities": {"add": []}}
    return manifests.nodeset(
        2,
        WORKERS,
        slurmd={"securityContext": context, "volumeMounts": MOUNTS},
        template={"spec": {"hostname": "slinky-", "volumes": VOLUMES}},
    )


def controlled(path: str) -> Json:
    """Two privileged workers with devices that stand for GPUs, and a folder of the machine."""
    found = manifests.on_shared_disk(manifests.nodeset(2), path)
    spec = found["spec"]
    # More CPUs than machines of tests may have: of a dynamic node Slurm takes what is declared.
    spec["extraConf"] = "CPUs=4 RealMemory=8192 Gres=gpu:2"
    for name, source in DEVICES.items():
        volume = {"name": name, "hostPath": {"path": source, "type": "CharDevice"}}
        spec["template"]["spec"]["volumes"].append(volume)
        spec["slurmd"]["volumeMounts"].append({"name": name, "mountPath": f"/dev/{name}"})
    return found


@pytest.fixture(scope="module")
def both(clusters: Callable[[str], Cluster]) -> tuple[Cluster, Cluster]:
    shared, held = clusters("shared"), clusters("held")
    shared.create()
    enforce(shared, "baseline")
    login = manifests.loginset(
        login={"volumeMounts": MOUNTS}, template={"spec": {"volumes": VOLUMES}}
    )
    least: Json = {"securityContext": LEAST}
    slurmctld = manifests.controller(slurmctld=least, reconfigure=least, template=PROFILE)
    restapi = manifests.restapi(slurmrestd=least, template=PROFILE)
    shared.apply(share(), slurmctld, restapi, unprivileged(), login)
    held.create()
    held.apply(
        manifests.config_map("slurm-files", **{"cgroup.conf": CGROUP_CONF, "gres.conf": GPUS}),
        manifests.controller(CONTROLLED),
        manifests.restapi(),
        controlled(held.shared),
    )
    return shared, held


@pytest.fixture(scope="module")
def shared(both: tuple[Cluster, Cluster]) -> Shared:
    cluster, _ = both
    cluster.until_idle("slinky-0", "slinky-1", timeout=LONG_S)
    cluster.until_ready("loginsets", "login", LONG_S)
    return Shared(cluster, sbatch(cluster, "sleep 600", "--time=1", "--nodelist=slinky-0"))


@pytest.fixture(scope="module")
def held(both: tuple[Cluster, Cluster], shared: Shared) -> Cluster:
    _, cluster = both
    cluster.until_idle("compute-0", "compute-1", timeout=LONG_S)
    return cluster


def enforce(cluster: Cluster, level: str) -> None:
    """Have the namespace enforce a level of pod security."""
    label = ("label", "--overwrite", "namespace", cluster.namespace)
    cluster.site.kubectl(*label, f"{ENFORCE}={level}")


def test_from_a_job_to_its_pod_and_a_copy_of_its_file(shared: Shared, tmp_path: Path) -> None:
    """S039, S172, D6, D30: the node that squeue names is a label of its pod.

    slurmctld has no capability, and the namespace enforces `baseline` for logins and workers.
    The pod is there at all since `privileged: false` and an empty list are taken at their word.
    """
    script = "head -c 1048576 /dev/urandom >/root/output.txt; sha256sum </root/output.txt"
    job = shared.sbatch(script, "--nodelist=slinky-1")
    shared.cluster.until_job(job, "COMPLETED")
    number, node = shared.login(f'squeue -h -t all -j {job} -o "%i %N"').split()
    assert (int(number), node) == (job, "slinky-1")
    (pod,) = shared.cluster.pods(f"{slinky_labels.POD_HOSTNAME}={node}")
    assert pod == f"{WORKERS}-1"
    copy = tmp_path / "output.txt"
    shared.cluster.kubectl("cp", f"{shared.cluster.namespace}/{pod}:/root/output.txt", str(copy))
    assert copy.stat().st_size == 1 << 20
    assert hashlib.sha256(copy.read_bytes()).hexdigest() == shared.output(job)[0].split()[0]


def test_output_of_two_workers_is_whole_at_the_login_through_scale_in(shared: Shared) -> None:
    """S040: seen as soon as the job has ended, and nothing of it is in the workers' own files."""
    cluster = shared.cluster
    said = "srun sh -c 'echo {} $SLURMD_NODENAME'"
    wait = "until [ -e /shared/told ]; do sleep 0.2; done"
    job = shared.sbatch("\n".join((said.format("begin"), wait, said.format("end"))), "-N2")
    begun = ["begin slinky-0", "begin slinky-1"]
    eventually("both have begun", lambda: sorted(shared.output(job)) == begun)
    cluster.kubectl("scale", f"nodeset/{WORKERS}", "--replicas=1")
    eventually("it drains", lambda: "DRAIN" in cluster.states()["slinky-1"])
    shared.login("touch /shared/told")
    done = cluster.until_job(job, "COMPLETED", "FAILED", "NODE_FAIL")
    written = shared.output(job)
    assert done["JobState"] == "COMPLETED"
    assert sorted(written) == [*begun, "end slinky-0", "end slinky-1"]
    left = f"find / -xdev '(' -name '{job}.out' -o -path '/var/spool/slurmd/job*{job}' ')'"
    eventually("nothing is left", lambda: not cluster.on(f"{WORKERS}-0", left).strip())
    cluster.until("pods", lambda pods: f"{WORKERS}-1" not in pods, "the other worker goes", LONG_S)
    assert shared.output(job) == written


def test_workers_that_a_namespace_rejects_are_reported_and_come_when_it_admits_them(
    shared: Shared,
) -> None:
    """D30: a privileged one is refused by `baseline`, and each by `restricted`."""
    cluster = shared.cluster
    own = {"enabled": True, "config": "MaxTime=UNLIMITED"}
    cluster.apply(manifests.nodeset(1, "full", partition=own))
    said = refusal(cluster, "full", "baseline")
    assert 'privileged (container "slurmd" must not set' in said
    assert "`privileged: false`" in said
    assert "`capabilities: {add: []}`" in said

    enforce(cluster, "restricted")
    cluster.kubectl("scale", f"nodeset/{WORKERS}", "--replicas=2")
    said = refusal(cluster, WORKERS, "restricted")
    assert "runAsNonRoot" in said
    assert "slurmd runs as root" in said

    enforce(cluster, "privileged")
    for name in ("slinky-1", "full-0"):
        eventually("it comes", lambda name=name: "IDLE" in cluster.states().get(name, ()), LONG_S)
    for name in (WORKERS, "full"):
        cluster.until_ready("nodesets", name)
    assert cluster.run("srun", "-pfull", "--mem=50", "hostname").strip() == "full-0"


def refusal(cluster: Cluster, nodeset: str, level: str) -> str:
    """Wait until a NodeSet says that the level refuses its worker; in which words."""

    def told(found: dict[str, Json]) -> str | None:
        one = condition(found[nodeset], "Ready") if nodeset in found else {}
        right = one.get("reason") == "PodSecurityRefused" and f"`{level}`" in one["message"]
        return one["message"] if right else None

    return cluster.until("nodesets", told, f"{nodeset} says that {level} refuses it", LONG_S)


def test_a_batch_script_has_what_it_asks_for(held: Cluster) -> None:
    """S041: nodes, tasks, CPUs, memory, time, and one GPU of each node."""
    job = held.submit(BATCH)
    done = held.until_job(job, "COMPLETED", "FAILED")
    wanted = {
        "JobState": "COMPLETED",
        "NumNodes": "2",
        "NumTasks": "4",
        "CPUs/Task": "2",
        "MinMemoryNode": "4G",
        "TimeLimit": "01:00:00",
        "TresPerNode": "gres/gpu:1",
    }
    assert {name: done.get(name) for name in wanted} == wanted
    gpus, *tasks = held.output("batch").splitlines()
    assert gpus == "0"
    assert sorted(tasks) == ["compute-0 0"] * 2 + ["compute-1 0"] * 2


def test_jobs_of_one_gpu_each_have_different_ones_and_the_third_waits(held: Cluster) -> None:
    """S041, feature row 55: the other's cannot be opened; more than there is is not taken."""
    options = ("--gres=gpu:1", "--mem=50", "--nodelist=compute-0", "--output=/shared/gpu-%j")
    first, second, third = (held.submit(ONE_GPU, *options) for _ in range(3))
    seen = [
        eventually("it says what it has", lambda job=job: held.output(f"gpu-{job}"))
        for job in (first, second)
    ]
    assert sorted(seen) == ["0 0\n", "1 1\n"]
    eventually("it waits", lambda: held.job(third)["Reason"] == "Resources")
    held.site.node.run("touch", f"{held.shared}/seen")
    for job in (first, second, third):
        held.until_job(job, "COMPLETED")
    rejected = "Requested node configuration is not available"
    for more in ("--gres=gpu:3", "--mem=1T", "--cpus-per-task=5"):
        assert rejected in answer(held, more)
    most = rejected if lacks("25.05") else "PENDING PartitionConfig"
    assert most in answer(held, "--cpus-per-task=9")


def answer(cluster: Cluster, option: str) -> str:
    """What sbatch says to a job, or why the job waits."""
    try:
        job = cluster.submit("true", "--mem=50", "--output=/dev/null", option)
    except LocalError as error:
        return str(error)
    found = cluster.job(job)
    return f"{found['JobState']} {found['Reason']}"


def test_a_job_that_takes_more_memory_than_it_asked_for_is_ended(held: Cluster) -> None:
    """S041: by the kernel; Slurm says why, and the worker is free again."""
    job = held.submit(HOG, "--mem=100", "--output=/shared/memory")
    done = held.until_job(job, "OUT_OF_MEMORY", "FAILED", "CANCELLED", "COMPLETED")
    assert (done["JobState"], done["Reason"]) == ("OUT_OF_MEMORY", "OutOfMemory")
    assert "oom_kill event" in held.output("memory")
    held.until_idle("compute-0", "compute-1")


def test_a_job_over_its_time_ends_in_timeout(shared: Shared) -> None:
    """S041: it was submitted when the cluster came."""
    done = shared.cluster.until_job(shared.late, "TIMEOUT", "CANCELLED", "FAILED", timeout=LONG_S)
    assert (done["JobState"], done["TimeLimit"]) == ("TIMEOUT", "00:01:00")
    assert "DUE TO TIME LIMIT" in "\n".join(shared.output(shared.late))
