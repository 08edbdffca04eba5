"""A SlurmCluster of the current shape, whose workers NodeSets declare, on a real kubelet."""

from __future__ import annotations

import json
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e_kit import mariadb
from e2e_kit.api import Json, condition, ready, restarts
from e2e_kit.exporter import Exporter
from e2e_kit.hybrid import network
from e2e_kit.images import give_all
from e2e_kit.release import RELEASE, lines_of
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import SlurmClusterSite
from e2e_kit.slurmcluster_records import ClusterRecords
from penstock.local.demo_login import login, ssh_key
from penstock.local.errors import LocalError
from penstock.local.images import build_jail, build_slurm
from penstock.local.target import BuiltIn

EXAMPLES = Path(__file__).parents[2] / "examples"
BOTH = frozenset({"small-0", "large-0"})
BARE = "app.kubernetes.io/instance=bare"
DEBUG = "scontrol show slurmd | grep 'Slurmd Debug'"
MAIN = {"name": "main", "isAll": True, "config": "Default=YES"}
SMALL = {"name": "small", "nodeSetRefs": ["small"], "config": "MaxTime=INFINITE"}
LARGE = {"name": "large", "nodeSetRefs": ["large"], "config": "MaxTime=INFINITE"}
IMAGES: dict[str, str] = {}
"""By role, once they are loaded."""
DATABASE = "cpu-accounting-db"
INSTANCE = "app.kubernetes.io/instance"
OWN_ROOT = {
    "volumeClaimTemplateSpec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
}
KEYS = ("munge.key", "rest_jwt.key", "ssh_host_ed25519_key")


@pytest.fixture(scope="module")
def cluster(site: Site) -> Generator[SlurmClusterSite]:
    mariadb.load(site.node)
    images = give_all(site.node, [*build_jail(RELEASE).values(), build_slurm(RELEASE)["slurmdbd"]])
    name = f"nodesets-{secrets.token_hex(2)}"
    text = (EXAMPLES / "slurmcluster-nodesets.yaml").read_text()
    made = SlurmClusterSite(site, name, text, images, workers=BOTH, prefix="cpu-", name="cpu")
    IMAGES.update(images)
    try:
        made.up()
        yield made
    finally:
        made.down()


@pytest.fixture(scope="module")
def bare(site: Site, cluster: SlurmClusterSite) -> SlurmClusterSite:
    """A SlurmCluster without a jail, in the namespace of the other one."""
    images = give_all(site.node, build_jail(RELEASE).values())
    text = (EXAMPLES / "slurmcluster-without-jail.yaml").read_text()
    public = ssh_key().with_suffix(".pub").read_text().strip()
    text = text.replace("sshRootPublicKeys: []", f'sshRootPublicKeys: ["{public}"]')
    made = SlurmClusterSite(
        site, cluster.namespace, text, images, workers={"plain-0"}, prefix="bare-", name="bare"
    )
    made.join()
    return made


@pytest.fixture(scope="module")
def rooted(site: Site, cluster: SlurmClusterSite) -> Generator[SlurmClusterSite]:
    """The same names in another namespace, with a root for each worker."""
    images = give_all(site.node, build_jail(RELEASE).values())
    documents = list(yaml.safe_load_all((EXAMPLES / "slurmcluster-nodesets.yaml").read_text()))[:4]
    documents[2]["spec"]["jailMode"] = "PerWorker"
    documents[2]["spec"]["partitionConfiguration"]["partitions"] = [MAIN]
    documents[3]["spec"]["slurmd"]["volumes"]["jail"] = OWN_ROOT
    made = SlurmClusterSite(
        site,
        f"{cluster.namespace}-roots",
        yaml.safe_dump_all(documents),
        images,
        workers={"small-0"},
        prefix="cpu-",
        name="cpu",
    )
    try:
        made.up()
        yield made
    finally:
        made.down()


def pods(cluster: SlurmClusterSite) -> dict[str, tuple[str, int]]:
    """Uid and restarts of each pod of a SlurmCluster that runs."""
    chosen = ("-l", f"{INSTANCE}={cluster.name}", "--field-selector=status.phase=Running")
    items: list[Json] = json.loads(cluster.kubectl("get", "pods", *chosen, "-o", "json"))["items"]
    return {one["metadata"]["name"]: (one["metadata"]["uid"], restarts(one)) for one in items}


def submitted(cluster: SlurmClusterSite, script: str) -> str:
    """Output of a script on the login, in the jail if there is one."""
    root = "" if cluster.name == "bare" else "chroot /mnt/jail "
    login_pod = cluster.slurmctld.replace("controller", "login")
    return cluster.run(login_pod, "sshd", f"{root}sh -c {shlex.quote(script)}").strip()


def workers_of(cluster: SlurmClusterSite, name: str) -> dict[str, int]:
    """How many workers of a NodeSet there are, and are idle, as the operator knows them."""
    found = cluster.kubectl("get", f"nodesets.slurm.nebius.ai/{name}", "-o", "json")
    return json.loads(found)["status"]["workers"]


def scale(cluster: SlurmClusterSite, name: str, count: int) -> None:
    """Set the size of a NodeSet by its scale subresource, once the operator knows who is idle.

    Of idle workers the highest ordinal goes first; one whose job has just ended is no candidate.
    """

    def at_rest() -> bool:
        found = workers_of(cluster, name)
        return found["idle"] == found["current"]

    eventually(f"all workers of {name} are idle", at_rest, 60)
    cluster.kubectl("scale", f"nodesets.slurm.nebius.ai/{name}", f"--replicas={count}")


def patch(cluster: SlurmClusterSite, name: str, spec: dict[str, Any]) -> None:
    """Merge into the spec of a NodeSet."""
    cluster.kubectl(
        "patch",
        f"nodesets.slurm.nebius.ai/{name}",
        "--type=merge",
        "-p",
        json.dumps({"spec": spec}),
    )


def job(cluster: SlurmClusterSite, *words: str) -> str:
    """Output of srun in the jail, from the login pod."""
    return cluster.step("cpu-login-0", f"chroot /mnt/jail srun {' '.join(words)}")


def partition(cluster: SlurmClusterSite, name: str) -> str:
    """A partition in one line, as slurmctld has it; empty when it has none."""
    try:
        return cluster.scontrol("show", "partition", name, "-o")
    except LocalError:
        return ""


def partitions(cluster: SlurmClusterSite, *wanted: dict[str, Any]) -> None:
    """Declare these partitions, all others go."""
    cluster.patch({"partitionConfiguration": {"configType": "structured", "partitions": wanted}})


def answers(cluster: SlurmClusterSite, before: str) -> bool:
    """Whether another slurmctld than that of the pod `before` answers."""
    found = json.loads(cluster.kubectl("get", "pods", "-o", "json"))["items"]
    named = [one for one in found if one["metadata"]["name"] == cluster.slurmctld]
    if not any(ready(one) and one["metadata"]["uid"] != before for one in named):
        return False
    return "UP" in cluster.scontrol("ping")


def test_it_comes_up_and_jobs_run_in_each_partition(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S085."""
    figure(f"from objects to two idle workers of two NodeSets: {cluster.start_s:.1f} s")
    assert job(cluster, "-p", "small", "hostname").split() == ["small-0"]
    assert job(cluster, "-p", "large", "hostname").split() == ["large-0"]
    assert len(job(cluster, "-p", "main", "-N2", "hostname").split()) == 2
    assert job(cluster, "-C", "large", "hostname").split() == ["large-0"]


def test_each_way_between_its_daemons_is_found_open(site: Site, cluster: SlurmClusterSite) -> None:
    code, text = network(site, cluster.namespace)
    assert code == 0, text
    rows = [line.split() for line in text.splitlines()]
    assert rows[0] == ["SlurmCluster", "cpu"]
    for words in ("slurmd small-0 slurmctld", "slurmctld cpu-controller-0 slurmd large-0"):
        (row,) = (one for one in rows if one[: len(words.split())] == words.split())
        assert row[-1] == "yes"
    assert any(one[0] == "operator" for one in rows)
    assert "not known" not in text


def test_without_a_jail_jobs_and_sessions_have_the_root_of_their_container(
    site: Site, bare: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S177."""
    figure(f"without a jail, from objects to an idle worker: {bare.start_s:.1f} s")
    root = ". /etc/os-release; echo $VERSION_CODENAME; ls /mnt/jail"
    said = bare.step("bare-login-0", f"srun sh -c 'hostname; {root}'").split()
    assert said == ["plain-0", *bare.run("plain-0", "slurmd", root).split()]
    with login(BuiltIn(site.node.name), ssh_key(), bare.namespace, "bare-login-svc") as ssh:
        # Its pod is ready a moment before its Service leads there.
        eventually("sshd answers", lambda: ssh("echo up"))
        assert ssh("hostname; srun hostname").split() == ["bare-login-0", "plain-0"]
    assert bare.kubectl("get", "jobs,deployments", "-o", "name", "-l", BARE).split() == [
        "deployment.apps/bare-rest"
    ]
    eventually("it is available", lambda: bare.get()["status"].get("phase") == "Available", 60)
    assert bare.status("SConfigControllerAvailable") == "False"


def test_without_a_jail_slurmd_reads_a_changed_configuration(
    bare: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S177."""
    pods = {pod: bare.uid(pod) for pod in ("plain-0", "bare-controller-0", "bare-login-0")}
    began = time.monotonic()
    bare.patch({"customSlurmConfig": f"{bare.custom}SlurmdTimeout=77\nSlurmdDebug=debug2\n"})
    eventually("slurmctld has it", lambda: "77 sec" in bare.scontrol("show", "config"), 90)
    figure(f"without a jail, from a patch to slurmctld: {time.monotonic() - began:.1f} s")
    eventually(
        "slurmd has it",
        lambda: "Debug = 6" in " ".join(bare.run("plain-0", "slurmd", DEBUG).split()),
        180,
    )
    figure(f"without a jail, from a patch to slurmd: {time.monotonic() - began:.1f} s")
    files = ("bare-login-0", "sshd", "cat /etc/slurm/*.noedit")
    eventually("a login has it", lambda: "SlurmdTimeout=77" in bare.run(*files), 180)
    assert {pod: bare.uid(pod) for pod in pods} == pods
    assert bare.step("bare-login-0", "srun hostname").split() == ["plain-0"]


def test_each_worker_of_a_nodeset_has_a_root_of_its_own(
    rooted: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S177: as workers of a SlurmCluster do; a scaled-in worker's root goes with it."""
    figure(f"with a root of its own, from objects to an idle worker: {rooted.start_s:.1f} s")
    write = "touch /only-here; echo data >/home/shared"
    submitted(rooted, f"srun -Q sh -c '{write}'")
    assert submitted(rooted, "cat /home/shared; test -e /only-here || echo absent").split() == [
        *("data", "absent")
    ]
    scale(rooted, "small", 2)
    rooted.until_workers({"small-0", "small-1"})
    seen = "cat /home/shared; test -e /only-here && echo here || echo absent"
    for name, found in (("small-0", "here"), ("small-1", "absent")):
        assert submitted(rooted, f"srun -Q -w {name} sh -c '{seen}'").split() == ["data", found]

    def roots() -> str:
        found = rooted.kubectl("get", "nodesets.slurm.nebius.ai", "small", "-o", "json")
        return condition(json.loads(found), "WorkerRootsEqual").get("status", "")

    eventually("roots are equal", lambda: roots() == "True", 90)
    scale(rooted, "small", 1)
    rooted.until_workers({"small-0"})
    kept = "persistentvolumeclaim/jail-small-0"
    eventually(
        "one root is left",
        lambda: [one for one in _names(rooted, "pvc") if "small" in one] == [kept],
        60,
    )


def _names(cluster: SlurmClusterSite, kind: str) -> list[str]:
    return cluster.kubectl("get", kind, "-o", "name").split()


def test_three_clusters_have_keys_and_services_of_their_own(
    cluster: SlurmClusterSite, bare: SlurmClusterSite, rooted: SlurmClusterSite
) -> None:
    """S010: two of them in one namespace, two with the same names."""
    found: list[str] = []
    for space in (cluster, rooted):
        items: list[Json] = json.loads(space.kubectl("get", "secrets", "-o", "json"))["items"]
        found += [v for one in items for k, v in one.get("data", {}).items() if k in KEYS]
    assert len(found) == len(set(found)) == 3 * len(KEYS)
    services: list[Json] = json.loads(cluster.kubectl("get", "services", "-o", "json"))["items"]
    owners = {one.name: set[str]() for one in (cluster, bare)}
    for one in services:
        if chosen := one["spec"].get("selector"):
            labels = ",".join(f"{key}={value}" for key, value in chosen.items())
            names = ("get", "pods", "-l", labels, "-o", f"jsonpath={_INSTANCES}")
            owner = one["metadata"]["labels"][INSTANCE]
            assert set(cluster.kubectl(*names).split()) <= {owner}, one["metadata"]["name"]
            owners[owner].add(one["metadata"]["name"])
    assert all(len(names) > 2 for names in owners.values())
    maps = [one for one in _names(cluster, "configmaps") if "kube-root-ca" not in one]
    assert {one.split("/")[1].split("-")[0] for one in maps} == {"cpu", "bare"}


_INSTANCES = r"{.items[*].metadata.labels.app\.kubernetes\.io/instance}"


def test_three_clusters_share_no_job_and_no_credential(
    cluster: SlurmClusterSite, bare: SlurmClusterSite, rooted: SlurmClusterSite
) -> None:
    """S010."""
    every = (cluster, bare, rooted)
    for one, *others in (every, every[1:] + every[:1], every[2:] + every[:2]):
        number = submitted(one, "cd /tmp; sbatch --parsable -o /dev/null --wrap 'sleep 1000'")
        assert number in submitted(one, "squeue -h -o %i").split()
        for other in others:
            assert other.run(other.slurmctld, "slurmctld", "squeue -h") == ""
        submitted(one, f"scancel {number}")
        eventually("it has ended", lambda one=one: not submitted(one, "squeue -h"), 60)
    for one, other in permutations(every, 2):
        credential = one.run(one.slurmctld, "munge", "munge -n").strip()
        decode = "echo {} | unmunge 2>&1 | head -n 1"
        assert "Success" in one.run(one.slurmctld, "munge", decode.format(credential))
        assert "Invalid" in other.run(other.slurmctld, "munge", decode.format(credential))
        token = one.run(one.slurmctld, "slurmctld", "scontrol token username=root").strip()
        ask = f"{token} scontrol ping 2>&1; {token} squeue -h -o %i 2>&1; echo $?"
        assert one.run(one.slurmctld, "slurmctld", ask).split()[-1] == "0"
        assert other.run(other.slurmctld, "slurmctld", ask).split()[-1] != "0"


def test_a_deleted_cluster_leaves_the_others_with_their_pods_and_jobs(
    cluster: SlurmClusterSite, bare: SlurmClusterSite, rooted: SlurmClusterSite
) -> None:
    """S010: neither that of its namespace, nor that of its names in another one."""
    number = submitted(cluster, "cd /tmp; sbatch --parsable -o /dev/null --wrap 'sleep 1000'")
    running = "JobState=RUNNING"
    eventually("it runs", lambda: running in cluster.scontrol("show", "job", number), 60)
    kept = pods(cluster), pods(rooted)
    bare.kubectl("delete", "nodesets.slurm.nebius.ai/plain", "slurmcluster/bare", "--wait=false")
    names = ("get", "pods", "-o", "name", "-l", BARE)
    eventually("its pods are gone", lambda: bare.kubectl(*names) == "", 120)
    assert (pods(cluster), pods(rooted)) == kept
    assert submitted(rooted, "srun -Q hostname") == "small-0"
    rooted.down()
    eventually("its pods are gone", lambda: _names(rooted, "pods") == [], 120)
    assert pods(cluster) == kept[0]
    assert running in cluster.scontrol("show", "job", number)
    submitted(cluster, f"scancel {number}")
    assert len(job(cluster, "-p", "main", "-N2", "hostname").split()) == 2


def test_a_plan_names_keys_workers_and_jobs_and_changes_nothing(cluster: SlurmClusterSite) -> None:
    """`penstock plan` of a SlurmCluster and its NodeSet at once, on their live objects."""
    before = pods(cluster)
    number = submitted(cluster, "sbatch --parsable -w large-0 --wrap='sleep 300'")
    eventually("it runs", lambda: "RUNNING" in cluster.scontrol("show", "job", number))
    try:
        of_cluster = live(cluster, "slurmcluster", cluster.name)
        of_cluster["spec"]["customSlurmConfig"] += "\nMessageTimeout=23\n"
        large, small = (live(cluster, "nodeset.slurm.nebius.ai", one) for one in ("large", "small"))
        large["spec"]["replicas"] = small["spec"]["replicas"] = 0
        told = plan(cluster, of_cluster, large, small)
    finally:
        submitted(cluster, f"scancel {number}")
    space = cluster.namespace
    assert f"{space}/cpu: MessageTimeout takes effect by a reconfigure; nothing restarts" in told
    assert f"{space}/small: 1 pod (small-0) deleted at once" in told
    assert f"{space}/large: 1 pod (large-0) drained, and deleted when their jobs have ended" in told
    assert f"{space}/large: large-0 has job {number}" in told
    assert plan(cluster, live(cluster, "slurmcluster", cluster.name)) == "Nothing would change.\n"
    assert pods(cluster) == before


def live(cluster: SlurmClusterSite, kind: str, name: str) -> Json:
    """An object as a user would edit it."""
    found: Json = json.loads(cluster.kubectl("get", kind, name, "-o", "json"))
    del found["metadata"]["resourceVersion"]
    return found


def plan(cluster: SlurmClusterSite, *documents: Json) -> str:
    """What `penstock plan` reports of them."""
    return subprocess.run(
        [Path(sys.executable).with_name("penstock"), "plan", "-f", "-"],
        input=yaml.safe_dump_all(documents),
        env=cluster.env,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_one_nodeset_is_scaled_out_and_in_and_its_partition_follows(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S085, S086, S166: a restart of slurmctld brings no Slurm node back."""
    kept = {pod: cluster.uid(pod) for pod in BOTH}
    began = time.monotonic()
    scale(cluster, "large", 2)
    cluster.until_workers(BOTH | {"large-1"})
    figure(f"one worker more, until it is idle: {time.monotonic() - began:.1f} s")
    script = shlex.quote("srun -Q hostname; sleep 600")
    number = submitted(
        cluster, f"sbatch --parsable -p large -N2 --output=/home/hosts --wrap {script}"
    )
    both = ["large-0", "large-1"]

    def hosts() -> list[str]:
        return sorted(lines_of(submitted(cluster, "cat /home/hosts")))

    eventually("it runs", lambda: hosts() == both, 60)
    # The operator's view of its end is newer then: a worker that it takes for busy stays.
    eventually("the operator knows", lambda: workers_of(cluster, "large")["idle"] == 0)
    submitted(cluster, f"scancel {number}")
    scale(cluster, "large", 1)
    eventually("its record is gone", lambda: cluster.nodes().keys() == BOTH, 120)
    slurmctld = cluster.uid("cpu-controller-0")
    cluster.kubectl("delete", "pod", "cpu-controller-0")
    eventually("slurmctld is another one", lambda: answers(cluster, slurmctld), 90)
    eventually("its nodes are the same", lambda: cluster.nodes() == dict.fromkeys(BOTH, "idle"), 90)
    assert "TotalNodes=1 " in partition(cluster, "large")
    assert {pod: cluster.uid(pod) for pod in BOTH} == kept


def test_a_changed_partition_is_in_slurmctld_within_a_second(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S086."""
    restarts = cluster.uid("cpu-controller-0")
    spans: list[float] = []
    for limit in ("5", "6", "7"):
        partitions(cluster, MAIN, {**SMALL, "config": f"MaxTime={limit}"}, LARGE)
        began = time.monotonic()
        eventually(
            "it is changed",
            lambda m=limit: f"MaxTime=00:0{m}:00" in partition(cluster, "small"),
            60,
            0,
        )
        spans.append(time.monotonic() - began)
    partitions(cluster, MAIN, SMALL, LARGE, {"name": "new", "nodeSetRefs": ["large"], "config": ""})
    began = time.monotonic()
    eventually("it is there", lambda: "Nodes=large-0" in partition(cluster, "new"), 60, 0)
    spans.append(time.monotonic() - began)
    figure("from a patch's end to a partition in scontrol: " + ", ".join(f"{s:.2f}" for s in spans))
    assert cluster.uid("cpu-controller-0") == restarts


def test_a_removed_partition_is_drained_and_gone_once_its_job_ended(
    cluster: SlurmClusterSite,
) -> None:
    """S086."""
    number = cluster.run(
        "cpu-login-0", "sshd", "chroot /mnt/jail sbatch --parsable -p new --wrap 'sleep 1000'"
    ).strip()
    eventually("it runs", lambda: "JobState=RUNNING" in cluster.scontrol("show", "job", number), 60)
    partitions(cluster, MAIN, SMALL, LARGE)
    eventually("it is drained", lambda: "State=DRAIN" in partition(cluster, "new"), 60)
    eventually(
        "the condition names it", lambda: number in cluster.condition("PartitionsDraining"), 60
    )
    assert "JobState=RUNNING" in cluster.scontrol("show", "job", number)
    cluster.run("cpu-login-0", "sshd", f"chroot /mnt/jail scancel {number}")
    eventually("it is gone", lambda: not partition(cluster, "new"), 60)
    eventually("the condition is gone", lambda: not cluster.status("PartitionsDraining"), 60)


@pytest.mark.needs_slurm("26.05", "a slurmctld that reads the line from its file logs an error")
def test_a_rejected_partition_is_reported_and_others_are_changed(cluster: SlurmClusterSite) -> None:
    """S086."""
    wrong = {**SMALL, "config": "MaxTime=6 QOS=nosuch"}
    partitions(cluster, MAIN, wrong, {**LARGE, "config": "MaxTime=8"})
    eventually(
        "the reason is reported", lambda: "QOS=nosuch" in cluster.condition("ConfigApplied"), 60
    )
    eventually("others are changed", lambda: "MaxTime=00:08:00" in partition(cluster, "large"), 60)
    partitions(cluster, MAIN, SMALL, LARGE)
    eventually("it recovers", lambda: cluster.status("ConfigApplied") == "True", 60)
    assert job(cluster, "-p", "small", "hostname").split() == ["small-0"]


def test_a_changed_pod_field_replaces_the_pods_of_its_nodeset_alone(
    cluster: SlurmClusterSite,
) -> None:
    """S086."""
    before = {pod: cluster.uid(pod) for pod in BOTH}
    number = cluster.run(
        "cpu-login-0", "sshd", "chroot /mnt/jail sbatch --parsable -p small --wrap 'sleep 1000'"
    ).strip()
    eventually("it runs", lambda: "JobState=RUNNING" in cluster.scontrol("show", "job", number), 60)
    patch(cluster, "small", {"slurmd": {"customEnv": [{"name": "COLOUR", "value": "blue"}]}})
    eventually("it is drained", lambda: cluster.nodes().get("small-0") in {"drng", "drain"}, 60)
    assert cluster.uid("small-0") == before["small-0"]
    cluster.run("cpu-login-0", "sshd", f"chroot /mnt/jail scancel {number}")
    eventually("its pod is replaced", lambda: cluster.uid("small-0") != before["small-0"], 120)
    cluster.until_workers(BOTH)
    assert job(cluster, "-p", "small", "hostname").split() == ["small-0"]
    assert cluster.uid("large-0") == before["large-0"]


def test_an_added_volume_replaces_the_pods_of_its_nodeset_alone(
    cluster: SlurmClusterSite,
) -> None:
    """S086."""
    before = {pod: cluster.uid(pod) for pod in BOTH}
    volume: Json = {"name": "extra", "mountPath": "/extra", "volumeSource": {"emptyDir": {}}}
    patch(cluster, "small", {"slurmd": {"volumes": {"customVolumeMounts": [volume]}}})
    eventually("its pod is replaced", lambda: cluster.uid("small-0") != before["small-0"], 120)
    cluster.until_workers(BOTH)
    assert " /extra " in cluster.run("small-0", "slurmd", "cat /proc/mounts")
    assert cluster.uid("large-0") == before["large-0"]


def test_workers_named_one_by_one_and_features_are_found_by_partitions(
    cluster: SlurmClusterSite,
) -> None:
    """S085."""
    lines = [
        "PartitionName=main Nodes=ALL Default=YES",
        "PartitionName=single Nodes=large-0,small-0",
        "PartitionName=late Nodes=large-[0,1]",
        "PartitionName=sized Nodes=bigones",
    ]
    custom = f"{cluster.custom}NodeSet=bigones Feature=large\n"
    cluster.patch(
        {
            "customSlurmConfig": custom,
            "partitionConfiguration": {"configType": "custom", "rawConfig": lines},
        }
    )
    eventually("both are in it", lambda: "TotalNodes=2 " in partition(cluster, "single"), 90)
    eventually("one is in it", lambda: "TotalNodes=1 " in partition(cluster, "late"), 90)
    assert "TotalNodes=1 " in partition(cluster, "sized")
    assert job(cluster, "-p", "sized", "hostname").split() == ["large-0"]
    scale(cluster, "large", 2)
    eventually("the other joins", lambda: "TotalNodes=2 " in partition(cluster, "late"), 120)
    scale(cluster, "large", 1)
    eventually("it leaves", lambda: "TotalNodes=1 " in partition(cluster, "late"), 120)


def test_the_default_partitions_have_all_workers(cluster: SlurmClusterSite) -> None:
    """S085."""
    cluster.patch(
        {
            "customSlurmConfig": cluster.custom,
            "partitionConfiguration": {"configType": "default", "rawConfig": None},
        }
    )
    eventually("main has both", lambda: "TotalNodes=2 " in partition(cluster, "main"), 60)
    eventually("hidden has both", lambda: "TotalNodes=2 " in partition(cluster, "hidden"), 60)
    assert len(job(cluster, "-N2", "hostname").split()) == 2
    partitions(cluster, MAIN, SMALL, LARGE)
    eventually("it is structured again", lambda: bool(partition(cluster, "large")), 60)


def test_a_deleted_nodeset_is_drained_and_its_partition_is_empty(cluster: SlurmClusterSite) -> None:
    """S085, S086."""
    number = cluster.run(
        "cpu-login-0", "sshd", "chroot /mnt/jail sbatch --parsable -p small --wrap 'sleep 1000'"
    ).strip()
    eventually("it runs", lambda: "JobState=RUNNING" in cluster.scontrol("show", "job", number), 60)
    kept = cluster.uid("large-0")
    cluster.kubectl("delete", "nodesets.slurm.nebius.ai/small", "--wait=false")
    eventually("it is drained", lambda: cluster.nodes().get("small-0") in {"drng", "drain"}, 60)
    assert "JobState=RUNNING" in cluster.scontrol("show", "job", number)
    cluster.run("cpu-login-0", "sshd", f"chroot /mnt/jail scancel {number}")
    eventually("its record is gone", lambda: cluster.nodes() == {"large-0": "idle"}, 120)
    eventually("it is empty", lambda: "TotalNodes=0 " in partition(cluster, "small"), 60)
    eventually(
        "the condition names it", lambda: "small" in cluster.condition("NodeSetRefsResolved"), 60
    )
    assert job(cluster, "-p", "large", "hostname").split() == ["large-0"]
    assert cluster.uid("large-0") == kept


def test_a_database_of_the_operator_keeps_records_over_the_end_of_its_pod(
    cluster: SlurmClusterSite,
) -> None:
    """S169: started when asked; its password and PVC stay, and slurmdbd waits for it."""
    records = ClusterRecords(cluster, "cpu-login-0", IMAGES)
    slurmctld, early = cluster.uid("cpu-controller-0"), records.submit("sleep 8")
    image = {"image": mariadb.IMAGE, "imagePullPolicy": "Never"}
    records.enable(embeddedDB={"enabled": True, **image, "storage": {"size": "1Gi"}})
    records.available("True")
    records.registered()
    records.recorded(early)
    first = records.submit("true")
    records.recorded(first)
    password = cluster.kubectl("get", "secret", DATABASE, "-o", "jsonpath={.data}")
    slurmdbd, old = records.slurmdbd(), cluster.uid(f"{DATABASE}-0")
    cluster.kubectl("delete", "pod", f"{DATABASE}-0")
    meanwhile = records.submit("true")
    eventually("another one runs", lambda: cluster.uid(f"{DATABASE}-0") != old, 120)
    for job in (first, meanwhile, records.submit("true")):
        records.recorded(job)
    assert cluster.kubectl("get", "secret", DATABASE, "-o", "jsonpath={.data}") == password
    assert records.slurmdbd() == slurmdbd
    assert cluster.uid("cpu-controller-0") == slurmctld


def test_accounts_and_a_qos_act_at_once_and_reports_answer(cluster: SlurmClusterSite) -> None:
    """S063, S169: of a cluster with NodeSets."""
    records = ClusterRecords(cluster, "cpu-login-0", IMAGES)
    enforced = f"{cluster.custom}AccountingStorageEnforce=limits,qos\n"
    cluster.patch({"customSlurmConfig": enforced})
    eventually(
        "limits are in force",
        lambda: "limits" in cluster.scontrol("show", "config").partition("StorageEnforce")[2][:60],
        120,
    )
    records.in_jail("sacctmgr -i add account physics")
    records.in_jail("sacctmgr -i add user root account=physics")
    records.in_jail("sacctmgr -i add qos onejob set MaxJobsPerUser=1")
    records.in_jail("sacctmgr -i modify user root set qos+=onejob")
    options = "--account=physics --qos=onejob"

    def submitted() -> str:
        try:
            return records.submit("sleep 600", options)
        except LocalError:
            return ""

    first = eventually("the QOS is known", submitted, 120, every=1)
    running = "JobState=RUNNING"
    eventually("it runs", lambda: running in cluster.scontrol("show", "job", first), 120)
    second = records.submit("true", options)
    eventually(
        "the limit delays it",
        lambda: "QOSMaxJobsPerUserLimit" in cluster.scontrol("show", "job", second),
        120,
    )
    records.in_jail(f"scancel {first}")
    records.recorded(second)
    assert "physics" in records.in_jail(f"sacct -X -n -P -j {second} -o Account")
    assert "Cluster Utilization" in records.in_jail("sreport cluster utilization")


def test_metrics_of_jobs_are_those_of_sacct_where_slurmdbd_is_asked(
    site: Site, cluster: SlurmClusterSite
) -> None:
    """S114: `jobSource` accounting."""
    exporter = Exporter(site, cluster)
    exporter.enable(jobSource="accounting", accountingJobsLookback="1d")
    sacct = "sacct -X -n -P -a -S now-1days -o JobIDRaw,State,Partition,User"

    def rows() -> set[tuple[str, ...]]:
        found = exporter.series().get("slurm_job_info", [])
        names = ("job_id", "job_state", "slurm_partition", "user_name")
        return {tuple(one[name] for name in names) for one, _ in found}

    records = ClusterRecords(cluster, "cpu-login-0", IMAGES)
    records.recorded(records.submit("true"))
    lines = [line.split("|") for line in records.in_jail(sacct).splitlines()]
    # sacct names who cancelled a job.
    theirs = {(id_, state.split()[0], *rest) for id_, state, *rest in lines}
    eventually("they are the same", lambda: rows() == theirs, 30)
    # Workers that are gone have no place any more.
    nodes = cluster.nodes()
    places = [one for one, _ in exporter.series()["slurm_node_job"] if one["node_name"] in nodes]
    assert places
    for one in places:
        assert one["nodeset_name"] == one["node_name"].rpartition("-")[0]
    exporter.declare(enabled=False)


@pytest.mark.needs_slurm("26.05", "sbatch takes a job while a cluster has no node")
def test_accounts_and_queue_stay_while_all_workers_are_away(cluster: SlurmClusterSite) -> None:
    """S125: a job that waited runs on the first worker that is back, in its account."""
    records = ClusterRecords(cluster, "cpu-login-0", IMAGES)
    scale(cluster, "large", 0)
    eventually("no worker is left", lambda: not cluster.nodes(), 120)
    waiting = records.submit("true", "--account=physics")
    assert "physics" in records.in_jail("sacctmgr -n -P show account format=account").split()
    scale(cluster, "large", 1)
    records.recorded(waiting)
    cluster.until_workers({"large-0"})


def active(cluster: SlurmClusterSite) -> list[int]:
    """The ordinals of the NodeSet burst that are to have a pod."""
    found = cluster.kubectl("get", "nodesetpowerstates", "burst", "-o", "json")
    return json.loads(found)["spec"].get("activeNodes", [])


def test_a_job_powers_a_node_up_and_its_pod_goes_once_it_is_idle(
    site: Site, cluster: SlurmClusterSite
) -> None:
    """D60, D62: a job that comes while the operator is away has its node when that is back."""
    declared = cluster.kubectl("get", "nodesets.slurm.nebius.ai", "large", "-o", "json")
    spec = {
        **json.loads(declared)["spec"],
        "replicas": 2,
        "ephemeralNodes": True,
        "initialNumberEphemeralNodes": 0,
    }
    cluster.patch({"slurmConfig": {"suspendTime": 3}})
    api = {"apiVersion": "slurm.nebius.ai/v1alpha1", "kind": "NodeSet"}
    cluster.apply({**api, "metadata": {"name": "burst"}, "spec": spec})

    def may_power() -> bool:
        account = "jsonpath={.spec.serviceAccountName}"
        named = cluster.kubectl("get", "pod", cluster.slurmctld, "-o", account)
        return named == "cpu-slurm-controller" and cluster.nodes().get("burst-1") == "idle~"

    eventually("slurmctld has the nodes and may power them up", may_power, 240)
    assert active(cluster) == []
    submit = "chroot /mnt/jail sbatch --parsable --output=/dev/null"
    with site.without_operator():
        number = cluster.run("cpu-login-0", "sshd", f"{submit} -w burst-1 --wrap 'sleep 1'").strip()
        eventually("Slurm's program noted it", lambda: active(cluster) == [1], 120)
    assert job(cluster, "-w", "burst-0", "hostname").split() == ["burst-0"]

    def has_ended() -> bool:
        return "JobState=COMPLETED" in cluster.scontrol("show", "job", number)

    eventually("the job of before has run", has_ended, 240)

    def pods_of_burst() -> str:
        chosen = ("-l", "slurm.nebius.ai/nodeset=burst", "-o", "name")
        return cluster.kubectl("get", "pods", *chosen)

    eventually("no pod is left", lambda: not pods_of_burst(), 240)
    assert active(cluster) == []
    states = cluster.nodes()
    assert states["burst-0"] in {"idle%", "idle~"}
    assert states["burst-1"] in {"idle%", "idle~"}
    assert states["large-0"] == "idle"
    assert "DRAIN" not in cluster.scontrol("show", "node", "burst-[0-1]")
    cluster.kubectl("delete", "nodesets.slurm.nebius.ai/burst", "--wait=false")
