"""Features and weight of workers change in Slurm at once: no pod restarts, no job notices."""

from collections.abc import Callable

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("nodeslive")
    cluster.create(manifests.controller(), manifests.restapi(), workers("Feature=slow"))
    cluster.until_ready("nodesets", "compute")
    cluster.until_idle("compute-0", "compute-1")
    return cluster


def workers(extra_conf: str) -> Json:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}}
    return manifests.nodeset(2, extraConf=extra_conf, updateStrategy=rolling)


def has(cluster: Cluster, name: str, features: set[str], weight: int) -> bool:
    node = cluster.node(name)
    return set(node["features"]) == features and node["weight"] == weight


def test_features_and_weight_change_under_a_running_job(cluster: Cluster) -> None:
    job = cluster.submit("sleep 600", "--nodelist=compute-0", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    before = cluster.uids()
    cluster.run("scontrol", "update", "nodename=compute-1", "features=compute,slow,mine")
    cluster.apply(workers("Feature=fast Weight=7"))
    eventually("compute-0 has them", lambda: has(cluster, "compute-0", {"compute", "fast"}, 7), 60)
    wanted = {"compute", "fast", "mine"}
    eventually("so has compute-1", lambda: has(cluster, "compute-1", wanted, 7), 60)
    assert cluster.run("srun", "--constraint=fast", "hostname").strip() == "compute-1"
    assert cluster.job(job)["JobState"] == "RUNNING"
    status = cluster.until_ready("nodesets", "compute")["status"]
    assert status["updatedReplicas"] == 2
    assert cluster.uids() == before
    assert all(restarts(pod) == 0 for pod in cluster.pods().values())
    cluster.run("scancel", str(job))


def test_a_slurmd_that_comes_back_keeps_them(cluster: Cluster) -> None:
    cluster.apply(workers("Feature=fast Weight=7"))
    eventually("compute-0 has them", lambda: has(cluster, "compute-0", {"compute", "fast"}, 7), 60)
    started = cluster.node("compute-0")["slurmd_start_time"]["number"]
    cluster.on("compute-0", "kill -9 $(pidof -s slurmd)")
    eventually(
        "slurmd has registered again",
        lambda: cluster.node("compute-0")["slurmd_start_time"]["number"] > started,
        120,
    )
    eventually(
        "compute-0 has them still", lambda: has(cluster, "compute-0", {"compute", "fast"}, 7), 60
    )
