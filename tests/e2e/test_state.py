"""slurmctld's state outlives its pod: what runs goes on, and what waits is still there.

And nodes that are DOWN: what says why, and that each comes back by itself.
"""

import time
from collections.abc import Callable

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition, ready
from e2e_kit.changes import partition_shown
from e2e_kit.cluster import Cluster
from e2e_kit.cut import cut
from e2e_kit.site import Site, eventually

POD = f"{manifests.NAME}-controller-0"
UNTIL_TOLD = "while [ ! -e /shared/told ]; do sleep 0.2; done; echo the end"


LONG_S = 180.0
RESTART_S = 150.0
"""Within which slurmctld answers again; S064 says 30, which a loaded machine may miss."""
NONE: Json = {"enabled": False}
OTHER_KEY: Json = {
    # In place of the volume with the cluster's key.
    "name": "slurm-etc",
    "projected": {
        "defaultMode": 0o600,
        "sources": [
            {"secret": {"name": "other-key", "items": [{"key": "key", "path": "slurm.key"}]}}
        ],
    },
}


def controller() -> Json:
    """What users get who say nothing: a claim."""
    found = manifests.controller()
    found["spec"].pop("persistence")
    return found


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("state")
    worker = manifests.on_shared_disk(manifests.nodeset(1), cluster.shared)
    cluster.create(controller(), manifests.restapi(), worker)
    cluster.until_idle("compute-0")
    return cluster


def until_drained(cluster: Cluster) -> None:
    """Wait until the partition is as the patch has it."""

    def drained() -> bool:
        found = partition_shown(cluster, "compute")
        return (found.get("State"), found.get("Default")) == ("DRAIN", "NO")

    eventually("the partition takes no jobs", drained, 60)


def test_jobs_outlive_the_pod_of_slurmctld(cluster: Cluster) -> None:
    """S064, S019, feature row 7: what a patch made of a partition is the same in the new pod.

    The keys that the patch took away are told.
    """
    running = cluster.submit(UNTIL_TOLD, "--exclusive", "--output=/shared/out")
    cluster.until_job(running, "RUNNING")
    waiting = cluster.submit("echo second", "--exclusive", "--output=/shared/second")
    # Jobs that are there already may run in it.
    drain = {"spec": {"partition": {"config": "State=DRAIN"}}}
    cluster.patch("nodesets", "compute", drain)
    until_drained(cluster)
    cluster.site.until_event(cluster.namespace, "Default=YES (now NO)", "PartitionKeysGone")
    before, queue = cluster.uids(), queued(cluster)
    uid = cluster.get("pods", POD)["metadata"]["uid"]
    began = time.monotonic()
    cluster.kubectl("delete", "pod", POD)
    eventually(
        "slurmctld has a new pod", lambda: cluster.get("pods", POD)["metadata"]["uid"] != uid
    )
    eventually("slurmctld answers", lambda: "is UP" in cluster.run("scontrol", "ping"), RESTART_S)
    print(f"slurmctld answered {time.monotonic() - began:.1f} s after the delete")
    assert queued(cluster) == queue
    cluster.until("pods", lambda pods: POD in pods and ready(pods[POD]), "slurmctld is ready", 120)
    cluster.until_ready("controllers", manifests.NAME)
    until_drained(cluster)
    assert cluster.until_job(running, "RUNNING")["Restarts"] == "0"
    cluster.site.node.run("touch", f"{cluster.shared}/told")
    for job, name, words in ((running, "out", "the end\n"), (waiting, "second", "second\n")):
        assert cluster.until_job(job, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
        assert cluster.output(name) == words
    assert cluster.uids("app.kubernetes.io/name=slurmd") == {
        name: uid for name, uid in before.items() if name == "compute-0"
    }
    assert "setting DOWN" not in cluster.kubectl("logs", POD, "-c", "slurmctld", "--tail=-1")


def test_a_new_slurmctld_is_found_without_the_operator(site: Site, cluster: Cluster) -> None:
    """D7, feature row 7: workers and users reach it by its Service, which asks nobody."""
    cluster.patch(
        "nodesets", "compute", {"spec": {"partition": {"config": "Default=YES State=UP"}}}
    )
    # slurmctld is told at once; what the next one reads follows.
    config = f"{manifests.NAME}-config"
    eventually(
        "the file has it",
        lambda: "Default=YES State=UP" in cluster.get("configmaps", config)["data"]["slurm.conf"],
        60,
    )
    uid = cluster.get("pods", POD)["metadata"]["uid"]
    worker = cluster.uids("app.kubernetes.io/name=slurmd")
    with site.without_operator():
        cluster.kubectl("delete", "pod", POD)

        def found() -> str:
            return cluster.on("compute-0", "timeout 20 srun --quiet -p compute hostname").strip()

        eventually("a job runs", lambda: found() == "compute-0", RESTART_S)
        assert cluster.get("pods", POD)["metadata"]["uid"] != uid
        assert cluster.uids("app.kubernetes.io/name=slurmd") == worker
    cluster.until_ready("controllers", manifests.NAME)


def queued(cluster: Cluster) -> list[str]:
    """Ids and states of all jobs."""
    return sorted(cluster.run("squeue", "--noheader", "-o", "%i %T").splitlines())


def keys(cluster: Cluster) -> dict[str, Json]:
    """What the generated Secrets hold."""
    found = (f"{manifests.NAME}-auth-slurm", f"{manifests.NAME}-auth-jwt")
    return {name: cluster.get("secrets", name)["data"] for name in found}


def test_a_deleted_controller_leaves_its_jobs_and_its_keys(cluster: Cluster) -> None:
    """D40: one that is made again goes on with both, and so does the worker that ran on."""
    config = {"spec": {"partition": {"config": "Default=YES State=UP"}}}
    cluster.patch("nodesets", "compute", config)
    eventually(
        "the partition takes jobs",
        lambda: partition_shown(cluster, "compute").get("State") == "UP",
        60,
    )
    waiting = cluster.submit("echo kept", "--hold", "--output=/shared/kept")
    before, worker = keys(cluster), cluster.uids("app.kubernetes.io/name=slurmd")
    declared = cluster.get("controllers", manifests.NAME)["spec"]
    cluster.kubectl("delete", "controller", manifests.NAME)
    cluster.until("pods", lambda pods: POD not in pods, "slurmctld's pod is gone", 120)
    assert keys(cluster) == before
    cluster.apply(manifests.of("Controller", manifests.NAME, **declared))
    cluster.until_ready("controllers", manifests.NAME)
    assert keys(cluster) == before
    cluster.until_idle("compute-0")
    cluster.run("scontrol", "release", str(waiting))
    assert cluster.until_job(waiting, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
    assert cluster.output("kept") == "kept\n"
    assert cluster.uids("app.kubernetes.io/name=slurmd") == worker


def test_a_slurmd_that_ends_and_one_with_another_key_report_why(
    cluster: Cluster, site: Site
) -> None:
    """S059, S061: in logs, conditions and events; each heals alone, and no other node notices."""
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other-key"}}
    cluster.apply(
        {**other, "stringData": {"key": "not the key of slurmctld, but as long as one has to be"}},
        manifests.nodeset(1, "broken", extraConf="Bogus=1", partition=NONE),
        manifests.nodeset(
            1, "stranger", partition=NONE, template={"spec": {"volumes": [OTHER_KEY]}}
        ),
    )
    words = "fatal: failed to create dynamic node"
    site.until_event(cluster.namespace, words, "PodsFailing")
    told = cluster.until(
        "pods", lambda pods: failing(pods.get("broken-0", {})), "the pod says why", LONG_S
    )
    assert words in told
    assert "\n" not in told
    for options in ((), ("--previous",)):
        log = ("logs", "broken-0", "-c", "slurmd", *options)
        eventually("the log has it", lambda log=log: fatal(cluster.kubectl(*log)), LONG_S)
    cluster.apply(manifests.nodeset(1, "broken", partition=NONE))

    reason = cluster.until("nodesets", differs, "the NodeSet says whose key differs", LONG_S)
    for part in ("stranger-0", "slurm.key of Secret slurm-auth-slurm", "key of Secret other-key"):
        assert part in reason
    denied = "Protocol authentication error"
    assert denied in cluster.kubectl("logs", "stranger-0", "-c", "slurmd")
    assert denied in cluster.kubectl("logs", POD, "-c", "slurmctld", "--tail=-1")
    assert "stranger-0" not in cluster.states()
    before = started(cluster)
    right = cluster.get("secrets", "slurm-auth-slurm")["data"]["slurm.key"]
    cluster.patch("secret", "other-key", {"data": {"key": right}})
    cluster.until_idle("broken-0", "compute-0", "stranger-0", timeout=LONG_S)
    cluster.until(
        "pods",
        lambda pods: failing(pods.get("broken-0", {})) is None or None,
        "the pod's condition goes",
    )
    assert started(cluster) == before
    cluster.kubectl("delete", "nodesets", "broken", "stranger")


def fatal(log: str) -> bool:
    """Whether slurmd's log has its last words, and those before."""
    return "fatal: failed to create dynamic node" in log and "unrecognized key: Bogus" in log


def failing(pod: Json) -> str | None:
    """Why slurmd of a pod fails, by its condition."""
    found = condition(pod, "penstock.dev/SlurmdFailing")
    return found["message"] if found else None


def differs(nodesets: dict[str, Json]) -> str | None:
    """What a NodeSet says of a key that differs."""
    found = condition(nodesets["stranger"], "Ready")
    return found["message"] if found.get("reason") == "KeyDiffers" else None


def started(cluster: Cluster) -> tuple[int, str]:
    """When slurmd of the worker that works was started, and its pod."""
    uid = cluster.pods()["compute-0"]["metadata"]["uid"]
    return cluster.node("compute-0")["slurmd_start_time"]["number"], uid


def test_a_worker_that_is_cut_off_is_down_and_comes_back_by_itself(
    cluster: Cluster, site: Site
) -> None:
    """S060: by both names of the Service."""
    conf = manifests.EXTRA_CONF + "SlurmdTimeout=10\n"
    cluster.patch("controller", manifests.NAME, {"spec": {"extraConf": conf}})
    shown = ("sh", "-c", "scontrol show config | grep SlurmdTimeout")
    eventually("the limit is short", lambda: " 10 sec" in cluster.run(*shown), 120, every=1)
    names = (f"slurm-controller-{manifests.NAME}", f"{manifests.NAME}-controller")
    asked = "nc -zv {} 6817 2>&1; echo ended with $?"
    for name in names:
        assert cluster.on("compute-0", asked.format(name)).endswith("ended with 0\n")
    uids = cluster.uids("app.kubernetes.io/name=slurmd")
    rules = (("OUTPUT", "-p", "tcp", "--dport", "6817"), ("INPUT", "-p", "tcp", "--dport", "6818"))
    with cut(site, cluster.pods()["compute-0"], "slurmd.py", *rules):
        assert cluster.on("compute-0", asked.format(names[0])).endswith("ended with 1\n")
        eventually(
            "it is down and does not answer",
            lambda: {"DOWN", "NOT_RESPONDING"} <= cluster.states()["compute-0"],
            LONG_S,
            every=1,
        )
        assert cluster.node("compute-0")["reason"] == "Not responding"
    cluster.until_idle("compute-0", timeout=LONG_S)
    assert cluster.uids("app.kubernetes.io/name=slurmd") == uids
