"""A slurmctld in a pod and a slurmd outside: slurmdbd on either side, and a cgroup.conf on both.

Scenarios S077, S081.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass

import pytest

from e2e_kit import manifests, mariadb
from e2e_kit.api import Json
from e2e_kit.cluster import Cluster
from e2e_kit.external_hosts import Host, external_hosts
from e2e_kit.hybrid import (
    BATCH,
    CGROUP_CONF,
    JWT_SECRET,
    LONG_S,
    REFS,
    SLURM_KEY,
    accounted,
    controller,
    create_secrets,
    idle,
    names_of,
    server,
    service,
    shares,
    start_slurmdbd,
)
from e2e_kit.site import Site, eventually
from penstock.local.errors import LocalError

PASSWORD = "secret"

pytestmark = pytest.mark.timeout(900)


@dataclass
class Layout:
    """The cluster, and the hosts of a slurmd and a slurmdbd."""

    inner: Cluster
    node: Host
    dbd: Host

    def recorded(self, database: str, job: int) -> bool:
        """Whether a database has a job."""
        rows = mariadb.sql(self.inner, f"SELECT id_job FROM {database}.test_job_table")
        return str(job) in rows.split()


@pytest.fixture(scope="module")
def layout(
    site: Site,
    clusters: Callable[[str], Cluster],
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Layout]:
    mariadb.load(site.node)
    inner, folder = clusters("inner"), tmp_path_factory.mktemp("layout")
    with external_hosts(site.node, folder) as hosts:
        found = Layout(inner, hosts.host("slurmd", "metal-0"), hosts.host("slurmdbd", "metal-dbd"))
        inner.jwt_secret = JWT_SECRET
        inner.create()
        create_secrets(inner, folder)
        storage: Json = {
            "host": mariadb.NAME,
            "database": "inside",
            "username": "inside",
            "passwordKeyRef": {"name": "database", "key": "password"},
        }
        inner.apply(
            mariadb.password("database", PASSWORD),
            *mariadb.objects(inner, {"inside": PASSWORD, "outside": PASSWORD}),
            manifests.of("Accounting", "records", **REFS, storageConfig=storage),
            controller(found.node, accountingRef={"name": "records"}),
            manifests.restapi(),
            manifests.nodeset(1),
        )
        yield found
        with contextlib.suppress(LocalError):
            inner.kubectl("delete", "nodesets", "--all", "--timeout=60s")


def test_jobs_over_a_pod_and_a_kubernetes_node_are_recorded_by_a_slurmdbd_in_a_pod(
    layout: Layout,
) -> None:
    """S077: layout 1."""
    inner, node = layout.inner, layout.node
    inner.until_ready("accountings", "records", LONG_S)
    inner.until_ready("controllers", manifests.NAME, LONG_S)
    address = inner.get("pods", "records-accounting-0")["status"]["podIP"]
    node.hosts({**names_of(inner), "records-accounting": address})
    node.keys(0, slurm_key=SLURM_KEY)
    node.start("/usr/sbin/slurmd", "-D", "--conf-server", server(inner))
    idle(inner, "compute-0", "metal-0")
    job = int(inner.run(*BATCH))
    accounted(inner.run, job)
    accounted(node.run, job)
    assert layout.recorded("inside", job)
    inner.kubectl("scale", "nodeset", "compute", "--replicas=2")
    idle(inner, "compute-0", "compute-1", "metal-0")
    inner.kubectl("scale", "nodeset", "compute", "--replicas=1")
    idle(inner, "compute-0", "metal-0")


def test_they_are_recorded_by_an_external_slurmdbd(layout: Layout) -> None:
    """S077: layout 1, whose slurmdbd moves out."""
    inner = layout.inner
    address = inner.get("services", mariadb.NAME)["spec"]["clusterIP"]
    start_slurmdbd(layout.dbd, address, "outside", PASSWORD)
    host = f"metal-dbd.{inner.namespace}"
    inner.apply(
        *service("metal-dbd", layout.dbd, 6819),
        manifests.of("Accounting", "elsewhere", external=True, externalConfig={"host": host}),
    )
    inner.patch("controllers", manifests.NAME, {"spec": {"accountingRef": {"name": "elsewhere"}}})

    def moved() -> bool:
        return host in inner.run("scontrol", "show", "config") and (
            "test" in inner.run("sacctmgr", "-n", "-P", "show", "cluster", "format=cluster")
        )

    eventually("slurmctld has registered with it", moved, LONG_S, every=1)
    idle(inner, "compute-0", "metal-0")
    job = int(inner.run(*BATCH))
    accounted(inner.run, job)
    assert layout.recorded("outside", job)


def test_kubernetes_nodes_that_get_the_cgroup_conf_of_pods_are_reported_and_may_have_their_own(
    layout: Layout,
) -> None:
    """S081: the key's name, and both of the settings that the documentation has."""
    inner, node = layout.inner, layout.node
    assert not shares(inner, "compute", "IgnoreSystemd")
    inner.apply(cgroup_conf("IgnoreSystemd=yes"))
    said = eventually("it is told", lambda: shares(inner, "compute", "IgnoreSystemd"), LONG_S)
    assert "IgnoreSystemd=yes" in said
    assert "metal-0" in said
    node.stop("slurmd")
    node.run("rm", "-rf", "/run/slurm/conf")
    # Not from the pod, where the kubelet is just exchanging its files.
    ours = inner.get("configmaps", f"{manifests.NAME}-config")["data"]
    own = {"slurm.conf": ours["slurm.conf"], "cgroup.conf": CGROUP_CONF}
    for name, text in own.items():
        node.write(f"/etc/slurm/{name}", text.encode(), mode=0o644)
    node.start("/usr/sbin/slurmd", "-D")
    inner.run("scontrol", "reconfigure")
    fetched = "/run/slurm/conf/cgroup.conf"
    eventually(
        "the pod has the key",
        lambda: "IgnoreSystemd=yes" in inner.on("compute-0", f"cat {fetched}"),
        LONG_S,
    )
    idle(inner, "compute-0", "metal-0")
    inner.run(*BATCH)
    assert node.run("cat", "/etc/slurm/cgroup.conf") == CGROUP_CONF
    assert node.run("sh", "-c", f"[ -e {fetched} ] || echo absent") == "absent\n"
    inner.apply(cgroup_conf("IgnoreSystemdOnFailure=yes"))
    eventually("it is told no more", lambda: not shares(inner, "compute", "IgnoreSystemd"), LONG_S)


def cgroup_conf(line: str) -> Json:
    return manifests.config_map("slurm-files", **{"cgroup.conf": f"{CGROUP_CONF}{line}\n"})
