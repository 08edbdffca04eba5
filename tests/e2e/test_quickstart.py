"""The quickstart: from manifests to a job's output over ssh."""

import json
import subprocess
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from docs_kit.blocks import blocks_of
from docs_kit.run import run_blocks
from docs_kit.shells import on_cluster
from e2e_kit.api import Json, ready, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.cut import cut
from e2e_kit.site import Site, eventually
from penstock.local import install
from penstock.local.demo_login import Ssh
from penstock.local.errors import LocalError

WORKERS = {"compute-0", "compute-1"}
JOB = """#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=1 --output=/tmp/hello.out
srun hostname
"""


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ssh") / "key"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(make, check=True)
    return path


@pytest.fixture(scope="module")
def cluster(site: Site, key: Path) -> Generator[Cluster]:
    cluster = Cluster(site, "slurm")
    objects = install.documents("examples/quickstart.yaml")
    public = key.with_suffix(".pub").read_text()
    for one in objects:
        if one["kind"] == "LoginSet":
            one["spec"]["rootSshAuthorizedKeys"] = public
    site.kubectl("create", "namespace", cluster.namespace)
    started = time.monotonic()
    site.apply(*objects)
    cluster.until_ready("nodesets", "compute")
    eventually("a worker is idle", lambda: {"IDLE"} in cluster.states().values())
    print(f"\nfirst idle worker {time.monotonic() - started:.1f} s after apply")
    cluster.until_idle(*WORKERS)
    print(f"both workers idle {time.monotonic() - started:.1f} s after apply")
    yield cluster
    cluster.remove()


@pytest.fixture(scope="module")
def ssh(cluster: Cluster, key: Path) -> Ssh:
    cluster.until_ready("loginsets", "login")
    return Ssh(cluster.get("services", "login")["spec"]["clusterIP"], 22, key)


def test_root_logs_in_with_the_key_and_runs_a_job_on_both_nodes(ssh: Ssh, cluster: Cluster) -> None:
    """S037, feature row 17."""
    assert "compute" in ssh("sinfo -h -o %P")
    number = int(ssh("sbatch --parsable", JOB))
    done = cluster.until_job(number, "COMPLETED", "FAILED")
    assert (done["JobState"], done["ExitCode"]) == ("COMPLETED", "0:0")
    output = cluster.on(done["BatchHost"], "cat /tmp/hello.out")
    assert set(output.split()) == WORKERS


def test_srun_from_the_login_pod_reaches_workers_by_name(ssh: Ssh) -> None:
    """S037, feature row 53."""
    assert ssh("srun --quiet --nodes=1 --nodelist=compute-1 hostname").strip() == "compute-1"
    assert "compute-0" in ssh("srun --quiet --nodelist=compute-0 --pty bash -c hostname")


def test_a_job_is_cancelled_from_the_login_pod(ssh: Ssh, cluster: Cluster) -> None:
    """S037."""
    number = int(ssh("sbatch --parsable --output=/dev/null", "#!/bin/sh\nsleep 600\n"))
    cluster.until_job(number, "RUNNING")
    assert str(number) in ssh("squeue -h -o %i")
    ssh(f"scancel {number}")
    assert cluster.until_job(number, "CANCELLED")["JobState"] == "CANCELLED"


def test_another_key_is_rejected(ssh: Ssh, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)]
    subprocess.run(make, check=True)
    command = [str(other) if word.endswith("/key") else word for word in ssh.command]
    done = subprocess.run([*command, "true"], capture_output=True, check=False)
    assert done.returncode == 255


def test_the_login_survives_a_new_pod_with_the_same_host_key(
    ssh: Ssh, cluster: Cluster, key: Path
) -> None:
    """D26, feature row 19."""
    known = ssh("cat /etc/ssh/ssh_host_ed25519_key.pub")
    before = cluster.uids("app.kubernetes.io/name=login")
    cluster.kubectl("delete", "pod", "-l", "app.kubernetes.io/name=login")

    def another(pods: dict[str, dict[str, object]]) -> bool:
        return bool(pods) and not set(pods) & set(before)

    cluster.until("pods", lambda pods: another(_login(pods)), "a new login pod")
    cluster.until_ready("loginsets", "login")
    assert eventually("ssh works", lambda: _try(ssh)) == known


def _login(pods: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    return {name: pod for name, pod in pods.items() if name.startswith("login-")}


def _try(ssh: Ssh) -> str:
    return ssh("cat /etc/ssh/ssh_host_ed25519_key.pub")


@pytest.mark.parametrize(
    "selector",
    [
        "slinky.slurm.net/component=slurmd",
        "app.kubernetes.io/name=slurmd",
        "app.kubernetes.io/component=worker",
    ],
)
def test_each_label_query_gives_exactly_the_workers(cluster: Cluster, selector: str) -> None:
    """S008."""
    found = cluster.kubectl("get", "pods", "-l", selector, "-o", "name").split()
    assert {name.removeprefix("pod/") for name in found} == WORKERS


def test_the_partition_has_the_nodes(cluster: Cluster) -> None:
    assert cluster.run("sinfo", "-p", "compute", "-h", "-o", "%D").strip() == "2"
    assert cluster.kubectl("get", "nodeset").split()[0] == "NAME"


PAGES = blocks_of("quickstart")


OF_THE_LATEST = {f"docs/admin/{name}.md" for name in ("partitions", "rest", "versions")}
PAGES_OF_RELEASES = [
    pytest.param(one, marks=pytest.mark.needs_slurm("26.05", "these pages show the latest"))
    if one in OF_THE_LATEST
    else one
    for one in PAGES
]


@pytest.mark.parametrize("page", PAGES_OF_RELEASES)
def test_commands_of_a_page_print_what_it_shows(page: str, cluster: Cluster, ssh: Ssh) -> None:
    run_blocks(PAGES[page], on_cluster(cluster.site.node.env, ssh.command))


def test_the_example_of_partitions_adds_a_worker_and_two_partitions(
    site: Site, cluster: Cluster, ssh: Ssh
) -> None:
    objects = install.documents("examples/partitions.yaml")
    site.apply(*objects)
    cluster.until_idle(*WORKERS, "large-0")
    for partition in ("long", "urgent"):
        cluster.kubectl("wait", "--for=condition=Ready", f"partition/{partition}", "--timeout=60s")
    assert cluster.run("sinfo", "-h", "-p", "long", "-o", "%D %l").split() == ["3", "14-00:00:00"]
    assert ssh("srun --quiet -p urgent --constraint=large hostname").strip() == "large-0"
    for one in reversed(objects):
        cluster.kubectl("delete", one["kind"], one["metadata"]["name"], "--timeout=120s")
    cluster.until_idle(*WORKERS)


def test_nothing_was_restarted(cluster: Cluster) -> None:
    assert {name: restarts(pod) for name, pod in cluster.pods("").items() if restarts(pod)} == {}


def test_applying_again_changes_nothing(site: Site, cluster: Cluster, key: Path) -> None:
    before = cluster.uids()
    said = cluster.kubectl("get", "nodeset", "compute", "-o", "jsonpath={.metadata.generation}")
    objects = [
        one for one in install.documents("examples/quickstart.yaml") if one["kind"] == "NodeSet"
    ]
    site.apply(*objects)
    again = cluster.kubectl("get", "nodeset", "compute", "-o", "jsonpath={.metadata.generation}")
    assert (again, cluster.uids()) == (said, before)


def test_generated_keys_are_kept(cluster: Cluster) -> None:
    """S007."""
    names = ("slurm-auth-slurm", "slurm-auth-jwt")
    before = {name: cluster.get("secrets", name)["data"] for name in names}
    patch = '{"metadata":{"annotations":{"test":"poke"}}}'
    cluster.kubectl("patch", "controller", "slurm", "--type=merge", "-p", patch)
    cluster.until_ready("controllers", "slurm")
    assert {name: cluster.get("secrets", name)["data"] for name in names} == before
    for name in names:
        owner = cluster.get("secrets", name)["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"]) == ("Controller", "slurm")


def test_a_controller_that_does_not_exist_is_reported(cluster: Cluster) -> None:
    with pytest.raises(LocalError, match="not found"):
        cluster.kubectl("get", "controller", "other")


def test_a_changed_root_key_lets_its_owner_in_and_the_former_one_no_more(
    ssh: Ssh, cluster: Cluster, tmp_path: Path
) -> None:
    """D16, feature row 17: by another pod, which has the same host key (D26)."""
    known, before = _try(ssh), set(_login(cluster.pods("")))
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = key.with_suffix(".pub").read_text()
    # For the next test a probe that does not take two minutes.
    probe = {"initialDelaySeconds": 5, "periodSeconds": 1, "failureThreshold": 3}
    spec = {"rootSshAuthorizedKeys": public, "login": {"livenessProbe": probe}}
    cluster.patch("loginset", "login", {"spec": spec})
    cluster.until("pods", lambda pods: not before & set(_login(pods)), "the login pod is new")
    cluster.until_ready("loginsets", "login")
    now = Ssh(cluster.get("services", "login")["spec"]["clusterIP"], 22, key)
    assert eventually("the new key is taken", lambda: _try(now)) == known
    refused = subprocess.run([*ssh.command, "true"], capture_output=True, check=False)
    assert refused.returncode == 255


def test_a_login_that_does_not_serve_is_started_again(site: Site, cluster: Cluster) -> None:
    """D31, feature row 17: sackd ends, then nobody can connect to sshd any more."""
    cluster.kubectl("exec", "deploy/login", "-c", "login", "--", "pkill", "-KILL", "-x", "sackd")
    pod = _until_started(cluster, 1)
    with cut(site, pod, "/pause", ("INPUT", "-p", "tcp", "--dport", "22")):
        _until_started(cluster, 2)
    cluster.until_ready("loginsets", "login")
    said = cluster.kubectl("exec", "deploy/login", "-c", "login", "--", "srun", "-N1", "hostname")
    assert said.strip() in WORKERS


def test_logins_are_scaled_as_deployments_are(cluster: Cluster) -> None:
    """Feature row 18."""
    for number in (2, 1):
        cluster.kubectl("scale", "loginset/login", f"--replicas={number}")
        cluster.until(
            "pods",
            lambda pods, n=number: [ready(one) for one in _login(pods).values()] == [True] * n,
            f"{number} login pods are ready",
        )
        cluster.until_ready("loginsets", "login")
        shown = cluster.kubectl("get", "loginset/login", "--subresource=scale", "-o", "json")
        scale = json.loads(shown)
        assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (number, number)


def _until_started(cluster: Cluster, times: int) -> Json:
    """Wait until the login's container was started again that often, and is ready."""

    def found(pods: dict[str, Json]) -> Json | None:
        (pod,) = _login(pods).values()
        return pod if ready(pod) and restarts(pod) >= times else None

    return cluster.until("pods", found, f"login was started again {times} times")
