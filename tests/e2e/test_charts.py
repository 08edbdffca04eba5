"""The charts on a real node: the operator and a cluster with jobs, by Helm alone.

Covers S001 (Slinky's half), S003 and S032; D37, D38, D40;
the webhooks of the operator's pod, asked by the API server through their Service.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml

from e2e_kit import by_chart, manifests
from e2e_kit.api import Json, condition, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
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
    # The kinds are there already, made without Helm.
    kinds("install", kinds.name, str(CHARTS / "slurm-operator-crds"), "--take-ownership")
    try:
        with by_chart.operator(site, OWN, {}) as release:
            yield release
    finally:
        kinds.uninstall()


@pytest.fixture(scope="module")
def release(site: Site, operator: Release) -> Generator[Release]:
    release = Release(site.node, "slurm", "charts")
    release.install(by_chart.cluster_values(site), "slurm")
    yield release
    release.uninstall()
    site.kubectl("delete", "namespace", release.namespace, "--wait=false")


@pytest.fixture(scope="module")
def cluster(site: Site, release: Release) -> Cluster:
    cluster = Cluster(site, release.namespace)
    cluster.until_ready("nodesets", "slurm-worker-compute", timeout=180)
    cluster.until_idle(*NODES)
    return cluster


WEBHOOKS = "slurm-operator-webhook"
CONFIGURATIONS = "validatingwebhookconfigurations,mutatingwebhookconfigurations"


def scale(site: Site, replicas: int) -> None:
    """Scale the operator of the chart, and wait until it is so."""
    deployment = ("-n", OWN, "deployment/slurm-operator")
    site.kubectl("scale", *deployment, f"--replicas={replicas}")
    if replicas:
        site.kubectl("rollout", "status", *deployment, "--timeout=120s")
        return
    pods = ("-n", OWN, "pods", "-l", "app.kubernetes.io/name=slurm-operator")
    site.kubectl("wait", "--for=delete", *pods, "--timeout=120s")


def everything(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Uid and restarts of every pod."""
    return {name: (pod["metadata"]["uid"], restarts(pod)) for name, pod in cluster.pods("").items()}


def _selected(site: Site, cluster: Cluster, selector: str) -> set[str]:
    """Names of the pods that a selector of labels finds."""
    found = site.kubectl("get", "pods", "-n", cluster.namespace, "-l", selector, "-o", "name")
    return {line.removeprefix("pod/") for line in found.split()}


def test_the_kinds_are_served_and_the_operator_is_available(site: Site, operator: Release) -> None:
    """S001: by two charts."""
    listed = ("api-resources", "--api-group=slinky.slurm.net", "--no-headers")
    rows = [line.split() for line in site.kubectl(*listed).splitlines()]
    assert {(row[-1], row[-3]) for row in rows} == {
        (kind, "slinky.slurm.net/v1beta1")
        for kind in ("Accounting", "Controller", "LoginSet", "NodeSet", "RestApi", "Token")
    }
    deployment = ("-n", operator.namespace, "deployment/slurm-operator")
    site.kubectl("wait", "--for=condition=Available", *deployment, "--timeout=60s")


def test_a_cluster_by_helm_runs_jobs(cluster: Cluster) -> None:
    """S003: Slurm's nodes have the entry's key and a number; nobody makes a login or the like."""
    assert set(cluster.pods()) == WORKERS
    said = cluster.run("srun", "--quiet", "--nodes=2", "hostname")
    assert set(said.split()) == set(NODES)
    assert cluster.kubectl("get", "loginsets,accountings,tokens", "-o", "name") == ""


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
    release.upgrade(by_chart.cluster_values(site), newer)
    cluster.until(
        "nodesets",
        lambda found: any(
            one["metadata"]["labels"]["helm.sh/chart"] == "slurm-9.9.9" for one in found.values()
        ),
        "the new chart's label is there",
    )
    # What a user looks for pods by, on pods that run on.
    newest = "app.kubernetes.io/version=99.11,helm.sh/chart=slurm-9.9.9"
    eventually("the pods follow", lambda: _selected(site, cluster, newest) == set(before), 60)
    release.upgrade(by_chart.cluster_values(site, replicas=1), newer)
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


def test_a_fault_is_rejected_in_words_and_nobody_is_locked_out_without_an_operator(
    site: Site, cluster: Cluster
) -> None:
    """Feature rows 62 and 64, slinky 11.6: over TLS of its own making, and never in the way."""
    space = cluster.namespace
    said = eventually("it is refused", lambda: by_chart.rejection(site, space), 60)
    assert 'The NodeSet "probe" is invalid: spec.slurmd.env: write a list' in said
    assert "Warning: spec.controllerRef.name: there is no Controller absent" in said
    # Its bindings are asked about as well, and pods are bound with nobody to answer.
    site.kubectl("label", "ns", cluster.namespace, "topology.slinky.slurm.net/binding=enabled")
    try:
        scale(site, 0)
        cluster.apply(by_chart.faulty("bad"))
        cluster.patch("nodesets", "bad", {"spec": {"minReadySeconds": 1}})
        image = site.images.slurm.replace("{role}", "slurmd")
        container: Json = {"name": "any", "image": image, "command": ["sleep", "600"]}
        cluster.apply({**manifests.of("Pod", "any", containers=[container]), "apiVersion": "v1"})
        cluster.until(
            "pods",
            lambda found: found.get("any", {}).get("spec", {}).get("nodeName"),
            "a pod is bound",
        )
        cluster.kubectl("delete", "pod", "any", "--force", "--grace-period=0")
    finally:
        scale(site, 1)

    def told() -> bool:
        found = cluster.get("nodesets", "bad")
        return "spec.slurmd.env" in condition(found, "Ready").get("message", "")

    eventually("what was missed is told", told, 60)
    said = eventually(
        "another one is refused again", lambda: by_chart.rejection(site, cluster.namespace), 60
    )
    assert "spec.slurmd.env" in said
    cluster.kubectl("delete", "nodeset", "bad", "--timeout=60s")


def test_uninstalling_takes_the_cluster_and_leaves_the_kinds(
    site: Site, cluster: Cluster, release: Release
) -> None:
    """D40: objects of other clusters stay, since their kinds do."""
    release.uninstall()
    cluster.until("pods", lambda found: not found or None, "no pod is left", timeout=120)
    cluster.apply(manifests.nodeset(1, "elsewhere"))
    uid = cluster.get("nodesets", "elsewhere")["metadata"]["uid"]
    Release(site.node, "slurm-operator-crds", "default").uninstall()
    assert "nodesets.slinky.slurm.net" in site.kubectl("get", "crd", "-o", "name")
    found = cluster.get("nodesets", "elsewhere")["metadata"]
    assert (found["uid"], "deletionTimestamp" in found) == (uid, False)
    cluster.kubectl("delete", "nodeset", "elsewhere", "--timeout=60s")


def test_an_operator_that_is_uninstalled_leaves_nothing_in_the_way(
    site: Site, cluster: Cluster, operator: Release
) -> None:
    """Slinky 11.6: upstream's configuration, left behind, blocks every write."""
    secret = ("-n", OWN, "get", "secret", f"{WEBHOOKS}-certificates", "--ignore-not-found")
    assert WEBHOOKS in site.kubectl("get", CONFIGURATIONS, "-o", "name")
    assert site.kubectl(*secret)
    operator.uninstall()
    assert f"/{WEBHOOKS}" not in site.kubectl("get", CONFIGURATIONS, "-o", "name")
    cluster.apply(by_chart.faulty("bad"))
    cluster.kubectl("delete", "nodeset", "bad", "--timeout=60s")
    eventually("the certificate is gone", lambda: not site.kubectl(*secret), 60)
