"""A cluster by values of the chart, and what kubectl and Helm make of each other.

One release for S004, S005, S023, S031, S034 to S036 and S149: its file enables all components.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from e2e_kit import manifests, mariadb
from e2e_kit.api import Json, restarts
from e2e_kit.changes import partition_shown as shown
from e2e_kit.changes import slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.release import lacks
from e2e_kit.site import Site, eventually
from penstock.local.charts import rendered
from penstock.local.errors import LocalError
from support.release import Release

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

DEBUG = "PartitionName=debug Nodes=compute MaxTime=00:30:00"
NODES = ("compute-0", "compute-1", "compute-2", "gpu-0")
PARTITIONS = "by a reconfigure" if lacks("26.05") else "at once"
REQUESTS = {"cpu": "20m", "memory": "64Mi"}
NODESET = "slurm-worker-compute"


OWN: Json = {"image": ""}
"""The image that the operator has for it."""
LOGINS: Json = {"slinky": {"service": {"spec": {"type": "ClusterIP"}}}}
LOGIN = ("exec", "deploy/slurm-login-slinky", "-c", "login", "--")
DATABASE, PASSWORD = "records", "secret"
ACCOUNTING: Json = {
    "enabled": True,
    "slurmdbd": OWN,
    "storageConfig": {"host": mariadb.NAME, "database": DATABASE, "username": DATABASE},
}
WORKERS = "app.kubernetes.io/name=slurmd"
LONG_S = 180.0


def values(site: Site, nodesets: str = "nodeSets", **compute: Any) -> Json:
    """All components: two NodeSets with a partition each and a raw one, login, accounting."""
    repository, _, tag = site.images.slurm.replace("{role}", "slurmd").rpartition(":")
    slurmd: Json = {"image": {"repository": repository, "tag": tag}}
    fits: Json = {"oversubscribeNode": True, "logfile": OWN}
    return {
        "clusterName": "values",
        "configFiles": {"cgroup.conf": "CgroupPlugin=disabled\n"},
        "controller": {
            "slurmctld": OWN,
            "reconfigure": OWN,
            "logfile": OWN,
            "extraConf": f"{manifests.EXTRA_CONF}{DEBUG}\n",
        },
        "restapi": {"slurmrestd": OWN},
        "loginsetDefaults": {"login": OWN, "initconf": OWN},
        "loginsets": LOGINS,
        "accounting": ACCOUNTING,
        nodesets: {
            "compute": {
                **fits,
                "enabled": True,
                "replicas": 3,
                "slurmd": {**slurmd, "resources": {"requests": REQUESTS}},
                "partition": {"enabled": True, "config": "Default=YES"},
                **compute,
            },
            "gpu": {
                **fits,
                "replicas": 1,
                "slurmd": slurmd,
                "partition": {"enabled": True, "config": "MaxTime=1-00:00:00"},
            },
        },
    }


@pytest.fixture(scope="module")
def release(site: Site, clusters: Callable[[str], Cluster]) -> Generator[Release]:
    if not site.images.slurm:
        pytest.skip("a node that somebody else filled does not tell its images")
    mariadb.load(site.node)
    cluster = clusters("values")
    release = Release(site.node, "slurm", cluster.namespace)
    release.upgrade(values(site))
    # The database is late, as is its password.
    cluster.apply(mariadb.password("mariadb-password", PASSWORD))
    cluster.apply(*mariadb.objects(cluster, {DATABASE: PASSWORD}))
    yield release
    release.uninstall()


@pytest.fixture(scope="module")
def cluster(site: Site, release: Release) -> Cluster:
    cluster = Cluster(site, release.namespace)
    cluster.until_ready("nodesets", NODESET, LONG_S)
    cluster.until_idle(*NODES, timeout=LONG_S)
    return cluster


def test_one_file_is_the_whole_cluster_and_nothing_is_restarted(
    site: Site, cluster: Cluster
) -> None:
    """S031: no second command, though the database is late."""
    for kind, name in (
        ("controllers", "slurm"),
        ("restapis", "slurm"),
        ("nodesets", "slurm-worker-gpu"),
        ("loginsets", "slurm-login-slinky"),
        ("accountings", "slurm"),
    ):
        cluster.until_ready(kind, name, LONG_S)
    job = int(cluster.kubectl(*LOGIN, "sbatch", "--parsable", "--chdir=/tmp", "--wrap=true"))
    done = ("sacct", "-X", "-n", "-P", "-j", str(job), "-o", "State")
    eventually(
        "it is recorded",
        lambda: cluster.kubectl(*LOGIN, *done).strip() == "COMPLETED",
        LONG_S,
        every=1,
    )
    assert {name: restarts(pod) for name, pod in cluster.pods("").items() if restarts(pod)} == {}
    writes = site.audit(cluster.namespace, "pods")
    assert [one for one in writes if one.verb.startswith("delete")] == []


def test_an_entry_of_nodesets_is_a_nodeset_with_its_pods_and_partition(
    site: Site, cluster: Cluster
) -> None:
    """S005: nobody makes a pod by hand."""
    assert sorted(
        one["metadata"]["name"] for one in site.api.list("nodesets", cluster.namespace)
    ) == [
        NODESET,
        "slurm-worker-gpu",
    ]
    pods = {n: pod for n, pod in cluster.pods().items() if n.startswith(NODESET)}
    assert set(pods) == {f"{NODESET}-{number}" for number in range(3)}
    for pod in pods.values():
        (slurmd,) = (one for one in pod["spec"]["containers"] if one["name"] == "slurmd")
        assert slurmd["image"] == site.images.slurm.replace("{role}", "slurmd")
        assert slurmd["resources"]["requests"] == REQUESTS
        assert pod["metadata"]["ownerReferences"][0]["name"] == NODESET
    assert cluster.run("sinfo", "-p", "compute", "-h", "-o", "%D").split() == ["3"]


def test_each_entry_and_each_raw_line_is_a_partition(
    site: Site, cluster: Cluster, release: Release
) -> None:
    """S023: the other spelling of `nodesets` is the same, and both at once are refused."""
    assert shown(cluster, "compute")["Default"] == "YES"
    assert shown(cluster, "compute")["Nodes"] == "compute-[0-2]"
    gpu = shown(cluster, "gpu")
    assert (gpu["Nodes"], gpu["MaxTime"], gpu["Default"]) == ("gpu-0", "1-00:00:00", "NO")
    debug = shown(cluster, "debug")
    assert (debug["Nodes"], debug["MaxTime"]) == ("compute-[0-2]", "00:30:00")
    job = cluster.submit("true", "--output=/dev/null")
    assert cluster.until_job(job, "COMPLETED", "FAILED")["Partition"] == "compute"

    pods = cluster.uids("")
    generations = _generations(cluster)
    release.upgrade(values(site, "nodesets"))
    assert _generations(cluster) == generations
    assert cluster.uids("") == pods
    with pytest.raises(LocalError, match="compute"):
        release.upgrade({**values(site), "nodesets": values(site)["nodeSets"]})


def test_what_kubectl_set_is_overridden_with_both_values_reported_or_stays(
    site: Site, cluster: Cluster, release: Release
) -> None:
    """S034: Helm sends what differs from the last file, and with `--force` the whole object."""
    started = slurmctld(cluster)
    pods = cluster.uids("")
    by_hand: Json = {"replicas": 2, "minReadySeconds": 1, "partition": {"config": "MaxTime=60"}}
    cluster.patch("nodesets", NODESET, {"spec": by_hand})
    cluster.until("pods", lambda found: f"{NODESET}-2" not in found, "the third worker is gone")
    until_limit(cluster, "01:00:00")

    release.upgrade(values(site))
    spec = cluster.get("nodesets", NODESET)["spec"]
    assert (spec["replicas"], spec["partition"]["config"]) == (2, "MaxTime=60")
    config = "Default=YES MaxTime=120"
    release.upgrade(values(site, partition={"enabled": True, "config": config}))
    until_overridden(
        cluster, f'spec.partition.config="MaxTime=60" (set by kubectl-patch) is now "{config}"'
    )
    until_limit(cluster, "02:00:00")
    spec = cluster.get("nodesets", NODESET)["spec"]
    assert (spec["replicas"], spec["minReadySeconds"]) == (2, 1)

    release.replace(values(site))
    until_overridden(cluster, "spec.replicas=2 (set by kubectl-patch) is now 3")
    until_overridden(cluster, "spec.minReadySeconds=1 (set by kubectl-patch) is now ")
    cluster.until_idle(*NODES)
    until_limit(cluster, "UNLIMITED")
    after = cluster.uids("")
    kept = pods.keys() - {f"{NODESET}-2"}
    assert {name: after[name] for name in kept} == {name: pods[name] for name in kept}
    assert slurmctld(cluster) == started


def until_overridden(cluster: Cluster, words: str) -> None:
    """Wait until an event tells both values of a field."""
    cluster.site.until_event(cluster.namespace, words, "FieldsSetBack")


def until_limit(cluster: Cluster, limit: str) -> None:
    """Wait until the partition has a time limit."""
    wanted = {"MaxTime": limit}.items()
    eventually(f"compute has {limit}", lambda: wanted <= shown(cluster, "compute").items())


def test_an_upgrade_removes_no_partition_of_others(
    site: Site, cluster: Cluster, release: Release
) -> None:
    """S149."""
    cluster.apply(
        {
            "apiVersion": "penstock.dev/v1alpha1",
            "kind": "Partition",
            "metadata": {"name": "mine"},
            "spec": {
                "controllerRef": {"name": "slurm"},
                "nodeSets": [NODESET, "slurm-worker-gpu"],
            },
        }
    )
    cluster.until_ready("partitions", "mine")
    before = shown(cluster, "mine")
    assert before["Nodes"] == "compute-[0-2],gpu-0"
    config = {"enabled": True, "config": "Default=YES MaxTime=2:00:00"}
    release.upgrade(values(site, partition=config))
    eventually(
        "the upgrade is in effect", lambda: shown(cluster, "compute")["MaxTime"] == "02:00:00"
    )
    assert shown(cluster, "mine") == before


def test_components_go_and_come_and_the_others_stay(
    site: Site, cluster: Cluster, release: Release
) -> None:
    """S004: accounting, login and slurmrestd, by one upgrade each."""
    before = values(site)
    workers, started = cluster.uids(WORKERS), slurmctld(cluster)
    job = cluster.submit("sleep 600", "-w", "compute-0", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    assert ports(cluster, "slurm-accounting") == {6819}
    assert ports(cluster, "slurm-login-slinky") == {22}
    assert ports(cluster, "slurm-restapi") == {6820}

    def step(values: Json, *gone: str) -> None:
        was = services(cluster)
        release.upgrade(values)
        eventually(f"{gone} went alone", lambda: services(cluster) == was - set(gone), LONG_S)

    step({**before, "accounting": {"enabled": False}}, "slurm-accounting")
    cluster.until("pods", lambda pods: "slurm-accounting-0" not in pods, "slurmdbd is gone")
    later: Json = {**before, "accounting": {"enabled": False}, "loginsets": {}}
    step(later, "slurm-login-slinky")
    step({**later, "restapi": {"enabled": False}}, "slurm-restapi")
    release.upgrade(later)
    cluster.until_ready("restapis", "slurm", LONG_S)
    cluster.forget_address()
    release.upgrade({**later, "loginsets": LOGINS})
    cluster.until_ready("loginsets", "slurm-login-slinky", LONG_S)
    shown = eventually("it works", lambda: cluster.kubectl(*LOGIN, "squeue", "-h", "-o", "%i"), 60)
    assert shown.split() == [str(job)]
    assert cluster.uids(WORKERS) == workers
    assert slurmctld(cluster) == started
    assert cluster.job(job)["JobState"] == "RUNNING"
    cluster.run("scancel", str(job))
    cluster.until_idle(*NODES)


def services(cluster: Cluster) -> set[str]:
    """Names of the Services."""
    found = cluster.site.api.list("services", cluster.namespace)
    return {one["metadata"]["name"] for one in found}


def ports(cluster: Cluster, name: str) -> set[int]:
    """Ports of a Service."""
    return {one["port"] for one in cluster.get("services", name)["spec"]["ports"]}


def test_a_nodeset_made_by_hand_is_taken_over_and_then_only_what_differs_changes(
    site: Site, cluster: Cluster, release: Release
) -> None:
    """S035, S036: what the chart writes into pod templates it has already."""
    image = site.images.slurm.replace("{role}", "slurmd")
    pulled: Json = {"image": image, "imagePullPolicy": "IfNotPresent"}
    labels = {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/part-of": "slurm"}
    template: Json = {
        "metadata": {"labels": labels},
        "spec": {"nodeSelector": {"kubernetes.io/os": "linux"}},
    }
    own = {"enabled": True, "config": "MaxTime=60"}
    spec: Json = {"slurmd": pulled, "logfile": pulled, "template": template, "partition": own}
    cluster.apply(manifests.nodeset(2, "hand", **spec))
    cluster.until_idle(*NODES, "hand-0", "hand-1")
    cluster.until_ready("nodesets", "hand")
    eventually("its partition is there", lambda: bool(shown(cluster, "hand")))
    job = cluster.submit("sleep 600", "-p", "hand", "-w", "hand-0", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    before, pods, started = cluster.get("nodesets", "hand"), cluster.uids(""), slurmctld(cluster)

    cluster.kubectl("label", "nodeset", "hand", "app.kubernetes.io/managed-by=Helm")
    marks = ("name=slurm", f"namespace={cluster.namespace}")
    cluster.kubectl(
        "annotate", "nodeset", "hand", *(f"meta.helm.sh/release-{mark}" for mark in marks)
    )
    entry: Json = {
        "fullnameOverride": "hand",
        "replicas": 2,
        "oversubscribeNode": True,
        "slurmd": {"image": image},
        "logfile": {"image": image},
        "partition": own,
    }

    def taken(**changed: Any) -> Json:
        found = values(site)
        found["accounting"] = {"enabled": False}
        found["nodeSets"]["hand"] = {**entry, **changed}
        return found

    release.upgrade(taken())
    assert release.status() == "deployed"
    cluster.until_ready("nodesets", "hand")
    cluster.until_ready("controllers", "slurm")
    after = cluster.get("nodesets", "hand")
    assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
    assert (cluster.uids(""), slurmctld(cluster)) == (pods, started)
    assert cluster.job(job)["JobState"] == "RUNNING"
    names = {one["metadata"]["name"] for one in site.api.list("nodesets", cluster.namespace)}
    assert names == {NODESET, "slurm-worker-gpu", "hand"}

    other = taken(replicas=1, partition={"enabled": True, "config": "MaxTime=90"})
    said = plan(cluster, other)
    assert "1 pod (hand-1) deleted at once" in said
    assert f"PartitionName=hand takes effect {PARTITIONS}" in said
    release.upgrade(other)
    cluster.until("pods", lambda found: "hand-1" not in found, "the worker is gone")
    eventually("it is in Slurm", lambda: shown(cluster, "hand")["MaxTime"] == "01:30:00")
    now = cluster.get("nodesets", "hand")["spec"]
    differing = {key for key in now | before["spec"] if now.get(key) != before["spec"].get(key)}
    assert differing == {"replicas", "partition"}
    kept = {name: uid for name, uid in pods.items() if name != "hand-1"}
    assert kept.items() <= cluster.uids("").items()
    assert cluster.job(job)["JobState"] == "RUNNING"


def plan(cluster: Cluster, given: Json) -> str:
    """What `penstock plan` says of the chart with these values."""
    text = rendered("slurm", "slurm", cluster.namespace, given)
    penstock = str(Path(sys.executable).with_name("penstock"))
    done = subprocess.run(
        [penstock, "plan", "-n", cluster.namespace, "-f", "-"],
        input=text,
        env=cluster.site.node.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _generations(cluster: Cluster) -> dict[str, int]:
    """Generations of the kinds by name."""
    return {
        f"{resource} {one['metadata']['name']}": one["metadata"]["generation"]
        for resource in ("controllers", "restapis", "nodesets")
        for one in cluster.site.api.list(resource, cluster.namespace)
    }
