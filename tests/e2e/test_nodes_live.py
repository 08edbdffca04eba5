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
    """Feature row 24."""
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
    cluster.kill("slurmd", "compute-0")
    eventually(
        "slurmd has registered again",
        lambda: cluster.node("compute-0")["slurmd_start_time"]["number"] > started,
        120,
    )
    eventually(
        "compute-0 has them still", lambda: has(cluster, "compute-0", {"compute", "fast"}, 7), 60
    )


def test_fewer_resources_are_taken_under_a_running_job_and_more_by_another_pod(
    clusters: Callable[[str], Cluster],
) -> None:
    """S041, feature rows 24 and 55."""
    cluster = clusters("greslive")
    cluster.create(
        manifests.controller(manifests.EXTRA_CONF + "GresTypes=tmpdisk,fixed\n"),
        manifests.restapi(),
        workers("Gres=tmpdisk:4"),
    )
    cluster.until_idle("compute-0", "compute-1")
    cluster.until_ready("nodesets", "compute")
    job = cluster.submit("sleep 600", "--nodelist=compute-0", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    before = cluster.uids()
    for count in ("2", "4", "3"):
        cluster.apply(workers(f"Gres=tmpdisk:{count}"))
        for name in ("compute-0", "compute-1"):
            eventually(
                f"{name} has {count}",
                lambda n=name, c=count: cluster.node(n)["gres"] == f"tmpdisk:{c}",
                60,
            )
    assert cluster.job(job)["JobState"] == "RUNNING"
    cluster.run("scancel", str(job))

    # What a job uses waits for the job.
    options = ("--nodelist=compute-0", "--gres=tmpdisk:1", "--output=/dev/null")
    user = cluster.submit("sleep 600", *options)
    cluster.until_job(user, "RUNNING")
    cluster.apply(workers("Gres=tmpdisk:2"))
    eventually("compute-1 has 2", lambda: cluster.node("compute-1")["gres"] == "tmpdisk:2", 60)
    assert cluster.node("compute-0")["gres"] == "tmpdisk:3"
    cluster.run("scancel", str(user))
    eventually("compute-0 has 2", lambda: cluster.node("compute-0")["gres"] == "tmpdisk:2", 60)
    assert cluster.uids() == before
    assert cluster.until_ready("nodesets", "compute")["status"]["updatedReplicas"] == 2
    # slurmctld and a slurmd that comes back agree with it.
    cluster.run("scontrol", "reconfigure")
    started = cluster.node("compute-1")["slurmd_start_time"]["number"]
    cluster.kill("slurmd", "compute-1")
    eventually(
        "slurmd has registered again",
        lambda: cluster.node("compute-1")["slurmd_start_time"]["number"] > started,
        120,
    )
    eventually("it is idle", lambda: cluster.states()["compute-1"] == {"IDLE"}, 60)
    assert cluster.node("compute-1")["gres"] == "tmpdisk:2"
    options = ("--nodelist=compute-1", "--gres=tmpdisk:2", "--output=/dev/null")
    last = cluster.submit("sleep 1", *options)
    cluster.until_job(last, "COMPLETED")

    cluster.apply(workers("Gres=tmpdisk:8"))
    for name in ("compute-0", "compute-1"):
        eventually(f"{name} has 8", lambda n=name: cluster.node(n)["gres"] == "tmpdisk:8", 180)
    cluster.until_idle("compute-0", "compute-1", timeout=120)
    after = cluster.uids()
    assert all(after[name] != before[name] for name in ("compute-0", "compute-1"))
