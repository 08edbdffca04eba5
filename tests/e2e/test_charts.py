"""The charts on a real node: the operator and a cluster with jobs, by Helm alone.

Covers S001 (Slinky's half), S003, S032 and S035's promise that no pod is restarted; D37, D38, D40.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml

from e2e_kit import manifests
from e2e_kit.api import Json, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import OPERATOR, Site, eventually
from penstock.local import install
from penstock.local.charts import CHARTS
from support.release import Release

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

OWN = "charts-operator"
"""Namespace of the operator that the chart installs."""
NODES = ("compute-0", "compute-1")
WORKERS = {f"slurm-worker-{name}" for name in NODES}


@pytest.fixture(scope="module")
def operator(site: Site) -> Generator[Release]:
    """The operator by its chart, in the place of the one that other tests share."""
    if not site.images.slurm:
        pytest.skip("a node that somebody else filled does not tell its images")
    kinds = Release(site.node, "slurm-operator-crds", "default")
    release = Release(site.node, "slurm-operator", OWN)
    scale = ("-n", install.SYSTEM, "scale", f"deployment/{OPERATOR}")
    site.kubectl(*scale, "--replicas=0")
    try:
        # The kinds are there already, made without Helm.
        kinds("install", kinds.name, str(CHARTS / "slurm-operator-crds"), "--take-ownership")
        repository, _, tag = site.images.operator.rpartition(":")
        image = {"repository": repository, "tag": tag}
        started = time.monotonic()
        release.install(
            {"operator": {"image": image, "slurmImage": site.images.slurm}}, "slurm-operator"
        )
        site.kubectl("-n", OWN, "rollout", "status", "deployment/slurm-operator", "--timeout=120s")
        print(f"\noperator available {time.monotonic() - started:.1f} s after helm install")
        yield release
    finally:
        release.uninstall()
        kinds.uninstall()
        site.kubectl("delete", "namespace", OWN, "--ignore-not-found", "--wait=false")
        site.kubectl(*scale, "--replicas=1")
        site.operator_pod()


ROLES = ("slurmctld", "slurmrestd", "slurmd")


def values(site: Site, replicas: int = 2) -> Json:
    """A cluster of the images that the node has, for cgroups of version 1."""
    roles = {role: {"image": site.images.slurm.replace("{role}", role)} for role in ROLES}
    own: Json = {"image": ""}
    return {
        "clusterName": "charts",
        "configFiles": {"cgroup.conf": "CgroupPlugin=disabled\n"},
        "controller": {
            "slurmctld": roles["slurmctld"],
            "reconfigure": own,
            "logfile": own,
            "persistence": {"enabled": False},
            "extraConf": manifests.EXTRA_CONF,
        },
        "restapi": {"slurmrestd": roles["slurmrestd"]},
        "nodesets": {
            "compute": {
                "replicas": replicas,
                "oversubscribeNode": True,
                "slurmd": roles["slurmd"],
                "logfile": own,
                "partition": {"enabled": True, "config": "Default=YES"},
            }
        },
    }


@pytest.fixture(scope="module")
def release(site: Site, operator: Release) -> Generator[Release]:
    release = Release(site.node, "slurm", "charts")
    release.install(values(site), "slurm")
    yield release
    release.uninstall()
    site.kubectl("delete", "namespace", release.namespace, "--wait=false")


@pytest.fixture(scope="module")
def cluster(site: Site, release: Release) -> Cluster:
    cluster = Cluster(site, release.namespace)
    cluster.until_ready("nodesets", "slurm-worker-compute", timeout=180)
    cluster.until_idle(*NODES)
    return cluster


def everything(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Uid and restarts of every pod."""
    return {name: (pod["metadata"]["uid"], restarts(pod)) for name, pod in cluster.pods("").items()}


def test_a_cluster_by_helm_runs_jobs(cluster: Cluster) -> None:
    """S003: Slurm's nodes have the entry's key and a number."""
    assert set(cluster.pods()) == WORKERS
    said = cluster.run("srun", "--quiet", "--nodes=2", "hostname")
    assert set(said.split()) == set(NODES)


def test_a_job_runs_through_upgrades_of_chart_and_values_and_through_a_rollback(
    site: Site, cluster: Cluster, release: Release, tmp_path: Path
) -> None:
    """S032, D37, D38: the same values and another version of the chart restart nothing."""
    job = cluster.submit("sleep 600", "--nodelist=compute-0", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    before = everything(cluster)
    newer = tmp_path / "slurm"
    shutil.copytree(CHARTS / "slurm", newer)
    chart: Json = yaml.safe_load((newer / "Chart.yaml").read_text())
    told = {**chart, "version": "9.9.9", "appVersion": "99.11"}
    (newer / "Chart.yaml").write_text(yaml.safe_dump(told))
    release.upgrade(values(site), newer)
    cluster.until(
        "nodesets",
        lambda found: any(
            one["metadata"]["labels"]["helm.sh/chart"] == "slurm-9.9.9" for one in found.values()
        ),
        "the new chart's label is there",
    )
    release.upgrade(values(site, replicas=1), newer)
    cluster.until("pods", lambda found: WORKERS - set(found) or None, "one worker is gone")
    release.rollback(2)
    cluster.until_ready("nodesets", "slurm-worker-compute")
    eventually("the second worker is idle", lambda: cluster.states().get("compute-1") == {"IDLE"})
    after = everything(cluster)
    kept = set(before) - {"slurm-worker-compute-1"}
    assert {name: after.get(name) for name in kept} == {name: before[name] for name in kept}
    assert cluster.job(job)["JobState"] == "RUNNING"
    assert release.revisions() == [1, 2, 3, 4]
    cluster.run("scancel", str(job))
    cluster.until_job(job, "CANCELLED")


def test_uninstalling_takes_the_cluster_and_leaves_the_kinds(
    site: Site, cluster: Cluster, release: Release
) -> None:
    """D40: objects of other clusters stay, since their kinds do."""
    release.uninstall()
    cluster.until("pods", lambda found: not found or None, "no pod is left", timeout=120)
    Release(site.node, "slurm-operator-crds", "default").uninstall()
    assert "nodesets.slinky.slurm.net" in site.kubectl("get", "crd", "-o", "name")
