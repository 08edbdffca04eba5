"""slurmctld's state outlives its pod: what runs goes on, and what waits is still there."""

from collections.abc import Callable

import pytest

from e2e_kit import manifests
from e2e_kit.api import ready
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually

POD = f"{manifests.NAME}-controller-0"
UNTIL_TOLD = "while [ ! -e /shared/told ]; do sleep 0.2; done; echo the end"


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("state")
    controller = manifests.controller()
    # What users get who say nothing: a claim.
    controller["spec"].pop("persistence")
    worker = manifests.on_shared_disk(manifests.nodeset(1), cluster.shared)
    cluster.create(controller, manifests.restapi(), worker)
    cluster.until_idle("compute-0")
    return cluster


def test_jobs_outlive_the_pod_of_slurmctld(cluster: Cluster) -> None:
    """S064, feature row 7."""
    running = cluster.submit(UNTIL_TOLD, "--exclusive", "--output=/shared/out")
    cluster.until_job(running, "RUNNING")
    waiting = cluster.submit("echo second", "--exclusive", "--output=/shared/second")
    before = cluster.uids()
    uid = cluster.get("pods", POD)["metadata"]["uid"]
    cluster.kubectl("delete", "pod", POD)
    eventually(
        "slurmctld has a new pod", lambda: cluster.get("pods", POD)["metadata"]["uid"] != uid
    )
    cluster.until("pods", lambda pods: POD in pods and ready(pods[POD]), "slurmctld is ready", 120)
    cluster.until_ready("controllers", manifests.NAME)
    assert cluster.until_job(running, "RUNNING")["Restarts"] == "0"
    cluster.site.node.run("touch", f"{cluster.shared}/told")
    for job, name, words in ((running, "out", "the end\n"), (waiting, "second", "second\n")):
        assert cluster.until_job(job, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
        assert cluster.output(name) == words
    assert cluster.uids("app.kubernetes.io/name=slurmd") == {
        name: uid for name, uid in before.items() if name == "compute-0"
    }
