"""The operators and clusters of both APIs by their charts, side by side on a real node.

`soperator` leads SlurmClusters, `slurm-operator` Controllers, each in a namespace of its own.
"""

from __future__ import annotations

import json
from collections.abc import Generator

import pytest
import yaml

from e2e_kit import by_chart
from e2e_kit.api import Json, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.images import give_all
from e2e_kit.release import RELEASE
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import NAME as CLUSTER
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.controllers.registry import SERVED_APIS
from penstock.controllers.runtime.apis import NEBIUS
from penstock.local.charts import CHARTS
from penstock.local.errors import LocalError
from penstock.local.images import build_jail
from support import nebius
from support.release import Release

# Helm may have to be compiled first.
pytestmark = pytest.mark.timeout(1800)

OWN, OTHER = "soperator-chart", "slurm-operator-chart"
"""Namespaces of the operators."""
JAILED, PLAIN = "slurmcluster-chart", "slurm-chart"
"""Namespaces of the clusters: a SlurmCluster and a Controller."""
NAME = "deployment/soperator-manager"
LEASE = {one.group: one.lease for one in SERVED_APIS}
WORKERS = [f"worker-{ordinal}" for ordinal in range(10)]
UPGRADE = (
    *("--set", "slurmNodes.worker.size=10"),
    *("--set", "slurmNodes.controller.resources.memory=2Gi"),
)
JAIL: Json = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "jail-pvc", "namespace": JAILED},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "2Gi"}}},
}


@pytest.fixture(scope="module")
def other(site: Site) -> Generator[Release]:
    """The chart `slurm-operator`, in the place of the operator that other tests share."""
    if not site.images.operator:
        pytest.skip("the images of a node that somebody else filled are not known")
    with by_chart.operator(site, OTHER, {}) as release:
        yield release


@pytest.fixture(scope="module")
def release(site: Site, other: Release) -> Generator[Release]:
    """The chart `soperator`, with rights in its own namespace and that of the SlurmCluster."""
    release = Release(site.node, "soperator", OWN)
    try:
        site.kubectl("create", "namespace", JAILED)
        install_soperator(site, release)
        yield release
    finally:
        release.uninstall()
        site.kubectl("delete", "namespace", OWN, JAILED, "--ignore-not-found", "--wait=false")


def install_soperator(site: Site, release: Release) -> None:
    """`helm install`, and wait until the operator is available."""
    repository, _, tag = site.images.operator.rpartition(":")
    manager = {
        "image": {"repository": repository, "tag": tag},
        "slurmImage": site.images.slurm,
        "env": {"slurmOperatorWatchNamespaces": f"{OWN},{JAILED}"},
    }
    release.install({"controllerManager": {"manager": manager}}, "soperator")
    site.kubectl("-n", OWN, "rollout", "status", NAME, "--timeout=120s")


@pytest.fixture(scope="module")
def values(site: Site) -> Json:
    """Values of the SlurmCluster."""
    images = give_all(site.node, build_jail(RELEASE).values())
    return by_chart.slurmcluster_values(site, images, CLUSTER)


@pytest.fixture(scope="module")
def jailed(site: Site, release: Release, values: Json) -> Generator[Release]:
    """The chart `slurm-cluster` beside a PVC for its jail."""
    site.apply(JAIL)
    jailed = Release(site.node, CLUSTER, JAILED)
    try:
        jailed.install(values, "slurm-cluster")
        yield jailed
    finally:
        jailed.uninstall()
        gone = ("-n", JAILED, "--ignore-not-found", "--timeout=120s")
        site.kubectl("delete", "slurmcluster", CLUSTER, *gone)


@pytest.fixture(scope="module")
def slurmcluster(site: Site, jailed: Release) -> SlurmClusterSite:
    found = SlurmClusterSite(site, JAILED, "", {})
    found.until_idle(2)
    return found


@pytest.fixture(scope="module")
def plain(site: Site, other: Release, jailed: Release) -> Generator[Release]:
    """The chart `slurm`."""
    release = Release(site.node, "slurm", PLAIN)
    release.install(by_chart.cluster_values(site, replicas=1), "slurm")
    yield release
    release.uninstall()
    site.kubectl("delete", "namespace", PLAIN, "--ignore-not-found", "--wait=false")


def pods(cluster: SlurmClusterSite) -> dict[str, tuple[str, int]]:
    """Uid and restarts of each pod that runs."""
    command = ("get", "pods", "--field-selector=status.phase=Running", "-o", "json")
    items: list[Json] = json.loads(cluster.kubectl(*command))["items"]
    return {one["metadata"]["name"]: (one["metadata"]["uid"], restarts(one)) for one in items}


def versions(cluster: SlurmClusterSite) -> dict[str, str]:
    """Generations of all objects that have one."""
    command = ("get", "slurmcluster,statefulset,deployment,daemonset", "-o", "json")
    items: list[Json] = json.loads(cluster.kubectl(*command))["items"]
    return {
        f"{one['kind']} {one['metadata']['name']}": one["metadata"]["generation"] for one in items
    }


def test_pod_process_arguments_and_log_are_what_users_know(site: Site, release: Release) -> None:
    """S087."""
    assert "soperator-manager-" in site.kubectl("get", "pods", "-n", OWN, "-o", "wide")
    shown = site.kubectl("exec", "-n", OWN, NAME, "-c", "manager", "--", "ps", "aux")
    (process,) = (line for line in shown.splitlines() if "slurm_operator" in line)
    assert "--leader-elect" in process
    found = site.kubectl("exec", "-n", OWN, NAME, "-c", "manager", "--", "pgrep", "slurm_operator")
    assert found.split() == ["1"]
    arguments = site.kubectl(
        "get", "pods", "-n", OWN, "-o", "jsonpath={.items[0].spec.containers[0].args}"
    )
    assert json.loads(arguments)
    assert "starting" in site.kubectl("logs", "-n", OWN, NAME, "-c", "manager")


def test_it_leads_its_own_api_and_no_other(site: Site, release: Release) -> None:
    leases = json.loads(site.kubectl("get", "leases", "-n", OWN, "-o", "json"))["items"]
    holders = {one["metadata"]["name"]: one["spec"]["holderIdentity"] for one in leases}
    assert set(holders) == {LEASE[NEBIUS]}
    assert holders[LEASE[NEBIUS]].startswith("soperator-manager-")


def test_its_webhook_rejects_an_unknown_filter_with_the_known_ones(
    site: Site, release: Release
) -> None:
    changes = {"spec.slurmNodes.login.k8sNodeFilterName": "nowhere"}
    made = nebius.manifest("slurmcluster-1.23-0", changes)
    text = yaml.safe_dump({**made, "metadata": {"name": "probe", "namespace": OWN}})

    def answer() -> str:
        try:
            site.kubectl("create", "--dry-run=server", "-f", "-", stdin=text)
        except LocalError as error:
            return str(error)
        return ""

    eventually("the webhook is asked", lambda: "known: cpu" in answer())
    assert "'nowhere' is no entry of spec.k8sNodeFilters" in answer()


def test_two_charts_and_a_pvc_are_an_available_cluster(
    site: Site, slurmcluster: SlurmClusterSite
) -> None:
    """S009: the operator's chart has no value about storage."""
    eventually("all is ready", lambda: slurmcluster.status("Ready") == "True", 120)
    shown = site.kubectl("get", "slurmclusters", "-A", "--no-headers")
    assert f"{JAILED} {CLUSTER} Available" in " ".join(shown.split())
    assert len(slurmcluster.run("login-0", "sshd", srun("-N2")).split()) == 2


def test_the_checks_of_the_chart_run_before_a_job(slurmcluster: SlurmClusterSite) -> None:
    """S112: by the ConfigMap of the chart, which hides the scripts of the image."""
    assert slurmcluster.run("login-0", "sshd", srun("-w", "worker-0")).split() == ["worker-0"]
    outputs = "/mnt/jail/opt/soperator-outputs/local/slurm_scripts"
    found = slurmcluster.run("login-0", "sshd", f"cat {outputs}/worker-0.check_runner.prolog.out")
    assert "job_tmpfs_recreate passed" in found
    assert "boot_disk_full" not in found


def srun(*options: str) -> str:
    return f"chroot /mnt/jail srun {' '.join(options)} hostname"


def test_placeholders_keep_images_near_and_are_no_slurmctld(
    slurmcluster: SlurmClusterSite,
) -> None:
    """S091."""
    selector = ("-l", "app.kubernetes.io/component=controller", "--no-headers")
    count = len(slurmcluster.kubectl("get", "nodes", "-o", "name").split())

    def rows() -> dict[str, str]:
        lines = slurmcluster.kubectl("get", "pods", *selector).splitlines()
        return {line.split()[0]: line.split()[1] for line in lines}

    def are_ready() -> bool:
        ready = [state for name, state in rows().items() if name.startswith("controller-placeh")]
        return ready == ["2/2"] * count

    eventually("each Kubernetes node has one", are_ready, 60)
    placeholder = next(name for name in rows() if name.startswith("controller-placeholder-"))
    names = ("-o", "jsonpath={.spec.initContainers[*].name} {.spec.containers[*].name}")
    assert slurmcluster.kubectl("get", "pod", placeholder, *names).split() == ["munge", "slurmctld"]
    endpoints = slurmcluster.kubectl(
        *("get", "endpointslices", "-l", f"kubernetes.io/service-name={CLUSTER}-controller-svc"),
        *("-o", "jsonpath={.items[*].endpoints[*].targetRef.name}"),
    )
    assert endpoints.split() == ["controller-0"]
    assert "backup" not in slurmcluster.scontrol("ping")


def test_an_upgrade_by_set_has_ten_workers_and_more_memory(
    slurmcluster: SlurmClusterSite, jailed: Release, values: Json
) -> None:
    """S122."""
    before = pods(slurmcluster)
    jailed.upgrade(values, "slurm-cluster", *UPGRADE)
    slurmcluster.until_workers(WORKERS)
    requested = "jsonpath={.spec.containers[?(@.name=='slurmctld')].resources.requests.memory}"

    def memory() -> str:
        return slurmcluster.kubectl("get", "pod", "controller-0", "-o", requested)

    eventually("slurmctld has it", lambda: memory() == "2Gi", 120)
    slurmcluster.until_workers(WORKERS)
    kept = {name: pod for name, pod in before.items() if name.startswith("worker-")}
    after = pods(slurmcluster)
    assert {name: after[name] for name in kept} == kept


def test_a_plain_upgrade_changes_nothing(
    slurmcluster: SlurmClusterSite, jailed: Release, values: Json
) -> None:
    """S122: the same values give the same objects, and no pod is replaced."""
    jailed.upgrade(values, "slurm-cluster")
    slurmcluster.until_idle(2)
    eventually("all is ready", lambda: slurmcluster.status("Ready") == "True", 120)
    before = (versions(slurmcluster), pods(slurmcluster))
    jailed("upgrade", CLUSTER, str(CHARTS / "slurm-cluster"))
    jailed.upgrade(values, "slurm-cluster")
    assert (versions(slurmcluster), pods(slurmcluster)) == before


RUNNING = "JobState=RUNNING"


def in_jail(cluster: SlurmClusterSite, command: str) -> str:
    """Output of a command in the jail of the login."""
    return cluster.run("login-0", "sshd", f"chroot /mnt/jail {command}").strip()


def until_running(cluster: Cluster) -> None:
    """Wait until the worker of the chart `slurm` is idle."""
    cluster.until_ready("nodesets", "slurm-worker-compute", timeout=180)
    cluster.until_idle("compute-0")


def test_both_clusters_run_jobs_and_one_does_not_notice_that_the_other_goes(
    site: Site, slurmcluster: SlurmClusterSite, plain: Release, other: Release
) -> None:
    """S010: beside a cluster of the other API, whose operator goes as well."""
    cluster = Cluster(site, PLAIN)
    until_running(cluster)
    assert cluster.run("srun", "--quiet", "hostname").split() == ["compute-0"]
    assert len(slurmcluster.run("login-0", "sshd", srun("-N2")).split()) == 2
    job = in_jail(slurmcluster, "sbatch --parsable --wrap 'sleep 1000'")
    eventually("it runs", lambda: RUNNING in slurmcluster.scontrol("show", "job", job), 60)
    before = pods(slurmcluster)

    plain.uninstall()
    cluster.until("pods", lambda found: not found or None, "no pod is left", timeout=120)
    other.uninstall()
    site.kubectl("delete", "namespace", PLAIN, OTHER, "--timeout=120s")

    assert pods(slurmcluster) == before
    assert RUNNING in slurmcluster.scontrol("show", "job", job)
    worker = next(one for one in ("worker-0", "worker-1") if slurmcluster.nodes()[one] != "idle")
    assert slurmcluster.nodes()[worker] in {"mix", "alloc"}
    in_jail(slurmcluster, f"scancel {job}")
    slurmcluster.until_idle(2)


def test_the_removed_one_is_installed_again_and_does_not_notice_that_the_other_goes(
    site: Site,
    slurmcluster: SlurmClusterSite,
    jailed: Release,
    release: Release,
    plain: Release,
    other: Release,
) -> None:
    """S010: the same charts and values, in the other order."""
    before = pods(slurmcluster)
    by_chart.install_operator(site, other, {})
    plain.install(by_chart.cluster_values(site, replicas=1), "slurm")
    cluster = Cluster(site, PLAIN)
    until_running(cluster)
    assert pods(slurmcluster) == before
    job = cluster.submit("sleep 1000", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    kept = everything(cluster)

    in_jail(slurmcluster, "touch /home/kept")
    jailed.uninstall()
    for gone in (f"slurmcluster/{CLUSTER}", f"pods -l app.kubernetes.io/instance={CLUSTER}"):
        slurmcluster.kubectl("wait", "--for=delete", *gone.split(), "--timeout=120s")
    release.uninstall()
    site.kubectl("delete", "namespace", OWN, "--timeout=120s")

    assert everything(cluster) == kept
    assert cluster.job(job)["JobState"] == "RUNNING"
    cluster.run("scancel", str(job))


def test_a_cluster_installed_again_has_its_jail_and_takes_jobs(
    site: Site, slurmcluster: SlurmClusterSite, jailed: Release, release: Release, values: Json
) -> None:
    """S010: the PVC of the jail is the user's."""
    install_soperator(site, release)
    jailed.upgrade(values, "slurm-cluster", "--set", "slurmNodes.worker.size=1")
    slurmcluster.until_idle(1)
    assert in_jail(slurmcluster, "srun ls /home/kept") == "/home/kept"


def everything(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Uid and restarts of every pod of the chart `slurm`."""
    return {name: (one["metadata"]["uid"], restarts(one)) for name, one in cluster.pods("").items()}
