"""While Slurm cannot be asked, or answers nonsense, no worker is deleted, and users know why."""

from collections.abc import Callable

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.cluster import Cluster
from e2e_kit.proxy import REAL, Proxy
from e2e_kit.site import eventually
from penstock.simulation.faults import Fault

WORDS = {
    Fault.ERROR_IN_200: "Unspecified error",
    Fault.EMPTY_NODES: "listed no nodes",
    Fault.REFUSE: "refused the connection",
}
"""What the NodeSet's condition says of each fault."""
UNTIL_TOLD = "while [ ! -e /shared/{0} ]; do sleep 0.2; done; echo the end"
"""A job that ends when a file appears."""


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("unknown")
    cluster.restapi = REAL
    image = cluster.site.operator_pod()["spec"]["containers"][0]["image"]
    nodeset = manifests.on_shared_disk(manifests.nodeset(2), cluster.shared)
    cluster.create(manifests.controller(), *Proxy.objects(image))
    cluster.apply(manifests.restapi(REAL), nodeset)
    cluster.until_idle("compute-0", "compute-1")
    cluster.until_ready("nodesets", "compute")
    return cluster


@pytest.fixture
def proxy(cluster: Cluster) -> Proxy:
    """The proxy, which passes everything on, before two idle workers."""
    proxy = Proxy(cluster)
    proxy.switch(Fault.NONE)
    scale(cluster, 2)
    cluster.until_idle("compute-0", "compute-1")
    return proxy


def test_a_drained_worker_stays_as_long_as_nobody_can_confirm_that_it_is_empty(
    cluster: Cluster, proxy: Proxy
) -> None:
    """D4, D23."""
    job = cluster.submit(UNTIL_TOLD.format("first"), "-w", "compute-1", "--output=/shared/out")
    cluster.until_job(job, "RUNNING")
    cluster.kubectl("annotate", "pod", "compute-1", COST)
    scale(cluster, 1)
    eventually("it drains", lambda: "DRAIN" in cluster.states()["compute-1"])
    uid = cluster.get("pods", "compute-1")["metadata"]["uid"]
    for fault, words in WORDS.items():
        proxy.switch(fault)
        until_said(cluster, words)
        if fault is Fault.ERROR_IN_200:
            tell(cluster, "first")
            cluster.until_job(job, "COMPLETED")
            eventually("empty", lambda: cluster.states()["compute-1"] == {"IDLE", "DRAIN"})
        cluster.poke(3)
        assert living(cluster) == {"compute-0", "compute-1"}
    assert cluster.get("pods", "compute-1")["metadata"]["uid"] == uid
    proxy.switch(Fault.NONE)
    cluster.until("pods", lambda pods: "compute-1" not in pods, "compute-1 is gone")
    assert cluster.output("out") == "the end\n"
    eventually("its node too", lambda: set(cluster.states()) == {"compute-0"})


def test_a_worker_that_was_never_drained_is_drained_once_slurm_answers_again(
    cluster: Cluster, proxy: Proxy
) -> None:
    scale(cluster, 1)
    cluster.until_idle("compute-0")
    job = cluster.submit(UNTIL_TOLD.format("second"), "-w", "compute-0", "--output=/shared/out2")
    cluster.until_job(job, "RUNNING")
    proxy.switch(Fault.ERROR_IN_200)
    scale(cluster, 0)
    until_said(cluster, WORDS[Fault.ERROR_IN_200])
    cluster.poke(3)
    assert living(cluster) == {"compute-0"}
    assert "DRAIN" not in cluster.states()["compute-0"]
    proxy.switch(Fault.NONE)
    eventually("it drains", lambda: "DRAIN" in cluster.states()["compute-0"])
    assert living(cluster) == {"compute-0"}
    tell(cluster, "second")
    cluster.until("pods", lambda pods: "compute-0" not in pods, "compute-0 is gone")
    assert cluster.job(job)["JobState"] == "COMPLETED"
    assert cluster.output("out2") == "the end\n"


@pytest.mark.usefixtures("proxy")
def test_nothing_is_deleted_while_there_is_no_restapi(cluster: Cluster) -> None:
    """D4."""
    scale(cluster, 1)
    cluster.until_idle("compute-0")
    job = cluster.submit(UNTIL_TOLD.format("third"), "-w", "compute-0", "--output=/shared/out3")
    cluster.until_job(job, "RUNNING")
    cluster.kubectl("delete", "restapi", "--all", "--wait=true")
    cluster.kubectl("delete", "pod", "faultproxy")
    scale(cluster, 0)
    until_said(cluster, "no RestApi refers to Controller slurm")
    tell(cluster, "third")
    eventually("the job ends", lambda: cluster.job(job)["JobState"] == "COMPLETED")
    cluster.poke(5)
    assert living(cluster) == {"compute-0"}
    cluster.restapi = manifests.NAME
    cluster.apply(manifests.restapi())
    cluster.until("pods", lambda pods: "compute-0" not in pods, "compute-0 is gone")
    assert cluster.output("out3") == "the end\n"


COST = "nodeset.slinky.slurm.net/pod-deletion-cost=-1"


def scale(cluster: Cluster, replicas: int) -> None:
    cluster.kubectl("scale", "nodeset/compute", f"--replicas={replicas}")


def tell(cluster: Cluster, name: str) -> None:
    cluster.site.node.run("touch", f"{cluster.shared}/{name}")


def living(cluster: Cluster) -> set[str]:
    """Workers that are not being deleted."""
    pods = cluster.pods().items()
    return {name for name, pod in pods if "deletionTimestamp" not in pod["metadata"]}


def until_said(cluster: Cluster, words: str) -> None:
    def said(found: dict[str, Json]) -> bool:
        one = condition(found["compute"], "Ready")
        return one["reason"] == "SlurmUnknown" and words in one["message"]

    cluster.until("nodesets", said, f"the condition says {words!r}")
