"""Workers come and go with `replicas`; jobs neither notice nor are lost."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually

SLURM_SECONDS = 30.0
"""Within this Slurm and the status must tell what the pods do, however busy the machine is."""
WANTED = {"compute-0", "compute-1"}
MIN_READY = 4
"""Seconds for which a worker is ready before it counts as available."""
LINES = "echo line 1; until [ -e /shared/told-{0} ]; do sleep 0.2; done; echo line 2; echo the end"
"""A job that ends when it is told to."""
WRITTEN = "line 1\nline 2\nthe end\n"


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("scale")
    cluster.create(manifests.controller(), manifests.restapi(), workers(cluster, 2))
    cluster.until_ready("nodesets", "compute")
    cluster.until_idle("compute-0", "compute-1")
    return cluster


def workers(cluster: Cluster, replicas: int) -> Json:
    return manifests.on_shared_disk(manifests.nodeset(replicas), cluster.shared)


def partitions(cluster: Cluster) -> set[str]:
    return {name.rstrip("*") for name in cluster.run("sinfo", "-h", "-o", "%P").split()}


def partition_has(cluster: Cluster, name: str, nodes: int) -> bool:
    return cluster.run("sinfo", "-h", "-p", name, "-o", "%D").split() == [str(nodes)]


def by_scale(cluster: Cluster, replicas: int) -> None:
    cluster.kubectl("scale", "nodeset/compute", f"--replicas={replicas}")


def by_patch(cluster: Cluster, replicas: int) -> None:
    patch = f'{{"spec":{{"replicas":{replicas}}}}}'
    cluster.kubectl("patch", "nodeset", "compute", "--type=merge", "-p", patch)


def by_apply(cluster: Cluster, replicas: int) -> None:
    cluster.apply(workers(cluster, replicas))


def test_the_smallest_cluster_runs_a_command_from_the_slurmctld_pod(cluster: Cluster) -> None:
    assert cluster.run("srun", "--nodelist=compute-1", "hostname").strip() == "compute-1"
    kinds = cluster.kubectl("get", "loginsets,accountings,tokens", "-o", "name")
    assert kinds == ""


def test_the_workers_are_as_the_nodeset_declares(cluster: Cluster) -> None:
    """S006, D18, feature row 41: and when it is deleted, its job ends before its worker."""
    image = cluster.get("pods", "compute-0")["spec"]["containers"][0]["image"]
    requests = {"cpu": "5m", "memory": "16Mi"}
    other = manifests.nodeset(
        1, "other", partition={"enabled": True}, ordinalPadding=2, minReadySeconds=MIN_READY
    )
    manifests.on_shared_disk(other, cluster.shared)
    other["spec"]["controllerRef"]["namespace"] = cluster.namespace
    other["spec"]["slurmd"] |= {"image": image, "resources": {"requests": requests}}
    cluster.apply(other)
    cluster.until("nodesets", _available, "the new worker is available")
    seen = datetime.now(UTC)
    pod = cluster.get("pods", "other-00")
    since = datetime.fromisoformat(condition(pod, "Ready")["lastTransitionTime"])
    assert (seen - since).total_seconds() >= MIN_READY
    cluster.until_ready("nodesets", "other")
    slurmd = next(one for one in pod["spec"]["containers"] if one["name"] == "slurmd")
    assert (slurmd["image"], slurmd["resources"]["requests"]) == (image, requests)
    eventually("the partition has it", lambda: partition_has(cluster, "other", 1), SLURM_SECONDS)
    # The reference to the object's own namespace says nothing new.
    del other["spec"]["controllerRef"]["namespace"]
    cluster.apply(other)
    cluster.poke(2)
    cluster.until_ready("nodesets", "other")
    assert cluster.get("pods", "other-00")["metadata"]["uid"] == pod["metadata"]["uid"]
    options = ("--partition=other", "--nodelist=other-00", "--output=/shared/other")
    job = cluster.submit(LINES.format("other"), *options)
    cluster.until_job(job, "RUNNING")
    cluster.kubectl("delete", "nodeset", "other", "--wait=false")
    eventually("its node drains", lambda: _draining(cluster, "other-00"))
    cluster.poke(2)
    assert "deletionTimestamp" not in cluster.get("pods", "other-00")["metadata"]
    tell(cluster, "other")
    cluster.until("nodesets", lambda found: "other" not in found, "the NodeSet is gone")
    done = cluster.job(job)
    assert (done["JobState"], done["ExitCode"]) == ("COMPLETED", "0:0")
    assert cluster.output("other") == WRITTEN
    assert "other-00" not in cluster.pods()
    eventually("its node is gone", lambda: set(cluster.states()) == WANTED)
    eventually("so is its partition", lambda: partitions(cluster) == {"compute"})


def _available(found: dict[str, Json]) -> bool:
    return "other" in found and found["other"].get("status", {}).get("availableReplicas") == 1


def test_a_worker_shares_its_kubernetes_node_only_when_that_is_asked_for(cluster: Cluster) -> None:
    """Feature row 44."""
    apart = manifests.nodeset(1, "apart", oversubscribeNode=False)
    cluster.apply(apart)

    def refused(pods: dict[str, Json]) -> bool:
        found = condition(pods["apart-0"], "PodScheduled") if "apart-0" in pods else {}
        return found.get("status") == "False" and "anti-affinity" in found["message"]

    cluster.until("pods", refused, "no Kubernetes node has room for it")
    cluster.patch("nodeset", "apart", {"spec": {"oversubscribeNode": True}})
    cluster.until_ready("nodesets", "apart")
    assert cluster.states()["apart-0"] == {"IDLE"}
    cluster.kubectl("delete", "nodeset", "apart", "--timeout=60s")


@pytest.mark.parametrize(("change", "replicas"), [(by_scale, 3), (by_patch, 4), (by_apply, 5)])
def test_more_replicas_add_nodes_and_touch_nothing_else(
    cluster: Cluster, change: Callable[[Cluster, int], None], replicas: int
) -> None:
    """S012, feature row 22."""
    before = cluster.uids()
    change(cluster, replicas)
    cluster.until(
        "pods",
        lambda pods: sum(_running(pod) for pod in _workers(pods).values()) == replicas,
        f"{replicas} workers run",
    )
    eventually(
        "the partition has them",
        lambda: partition_has(cluster, "compute", replicas),
        SLURM_SECONDS,
    )
    status = cluster.until_ready("nodesets", "compute")["status"]
    assert (status["replicas"], status["readyReplicas"]) == (replicas, replicas)
    after = cluster.uids()
    assert {name: after[name] for name in before} == before
    assert set(cluster.pods()) == {f"compute-{number}" for number in range(replicas)}
    assert all(restarts(pod) == 0 for pod in cluster.pods("").values())


def test_status_and_columns_show_what_jobs_do(cluster: Cluster) -> None:
    """S015, feature rows 30 and 48: and when the job ends is at its pods."""
    by_apply(cluster, 5)
    cluster.until_idle(*(f"compute-{number}" for number in range(5)))
    options = ("--nodes=2", "--exclusive", "--time=30", "--output=/dev/null")
    job = cluster.submit("srun sleep 600", *options)
    cluster.until_job(job, "RUNNING")
    ends = cluster.rest("GET", f"job/{job}")["jobs"][0]["end_time"]["number"]
    ends = datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    cluster.until("pods", lambda pods: _deadlines(pods) == [ends, ends], f"two end at {ends}")
    wait_counts(cluster, slurmIdle=3, slurmAllocated=2)
    wanted = {"DESIRED": 5, "REPLICAS": 5, "UPDATED": 5, "READY": 5}
    wanted |= {"IDLE": 3, "ALLOCATED": 2, "DOWN": 0, "DRAIN": 0}

    def shown() -> bool:
        row = _row(cluster.kubectl("get", "nodeset", "-o", "wide"))
        return {column: int(row[column]) for column in wanted} == wanted

    eventually(f"the columns show {wanted}", shown)
    narrow = cluster.kubectl("get", "nodeset").splitlines()[0].split()
    assert narrow == ["NAME", "DESIRED", "REPLICAS", "UPDATED", "READY", "AGE", "REASON"]
    cluster.run("scancel", str(job))
    cluster.until_job(job, "CANCELLED")
    wait_counts(cluster, slurmIdle=5, slurmAllocated=0)
    cluster.until("pods", lambda pods: not _deadlines(pods), "no pod has a job")


def _deadlines(pods: dict[str, Json]) -> list[str]:
    key = "nodeset.slinky.slurm.net/pod-deadline"
    marks = (pod["metadata"].get("annotations", {}) for pod in _workers(pods).values())
    return [one[key] for one in marks if key in one]


def test_a_node_drained_by_hand_is_counted(cluster: Cluster) -> None:
    """S015."""
    cluster.run("scontrol", "update", "nodename=compute-0", "state=drain", "reason=by hand")
    wait_counts(cluster, slurmDrain=1)
    cluster.run("scontrol", "update", "nodename=compute-0", "state=resume")
    wait_counts(cluster, slurmDrain=0)


def test_an_idle_worker_that_is_not_wanted_goes_at_once(cluster: Cluster) -> None:
    """D35, S013, feature rows 22 and 65: it is counted with its ground."""
    by_apply(cluster, 3)
    cluster.until_ready("nodesets", "compute")
    deletes = cluster.site.total("penstock_pod_deletes_total", 'ground="')
    by_scale(cluster, 2)
    cluster.until("pods", lambda pods: set(_workers(pods)) == WANTED, "compute-2 is gone", 30)
    eventually("its node too", lambda: set(cluster.states()) == WANTED, SLURM_SECONDS)
    assert cluster.site.total("penstock_pod_deletes_total", 'ground="') == deletes + 1


def test_an_idle_worker_goes_before_a_busy_one(cluster: Cluster) -> None:
    """Feature row 28: though its ordinal is lower."""
    by_apply(cluster, 3)
    cluster.until_idle("compute-0", "compute-1", "compute-2")
    job = cluster.submit("sleep 600", "--nodelist=compute-2", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    by_scale(cluster, 2)
    cluster.until("pods", lambda pods: set(_workers(pods)) == {"compute-0", "compute-2"}, "-1 goes")
    eventually("nothing drains", lambda: not _draining(cluster, "compute-2"))
    assert cluster.job(job)["JobState"] == "RUNNING"
    cluster.run("scancel", str(job))
    by_scale(cluster, 3)
    cluster.until_idle("compute-0", "compute-1", "compute-2")


def test_a_busy_worker_stays_until_its_job_has_ended(cluster: Cluster) -> None:
    """S013, S040, feature rows 28, 29 and 31: the NodeSet says for which job it waits."""
    by_apply(cluster, 3)
    cluster.until_idle("compute-0", "compute-1", "compute-2")
    cost = "nodeset.slinky.slurm.net/pod-deletion-cost=-1"
    cluster.kubectl("annotate", "pod", "compute-2", cost)
    job = cluster.submit(LINES.format("busy"), "--nodelist=compute-2", "--output=/shared/busy")
    cluster.until_job(job, "RUNNING")
    by_scale(cluster, 2)
    drained = eventually("compute-2 drains", lambda: _draining(cluster, "compute-2"))
    assert drained["reason"].startswith("slurm-operator: ")
    assert f"{cluster.namespace}/compute-2" in drained["reason"]
    assert "ALLOCATED" in drained["state"] or "MIXED" in drained["state"]
    cluster.until("nodesets", lambda found: _waits_for(found, job), f"it waits for job {job}")
    cluster.poke(3)
    pod = cluster.get("pods", "compute-2")
    assert "deletionTimestamp" not in pod["metadata"]
    tell(cluster, "busy")
    cluster.until("pods", lambda pods: "compute-2" not in pods, "compute-2 is gone")
    done = cluster.job(job)
    assert (done["JobState"], done["ExitCode"]) == ("COMPLETED", "0:0")
    assert cluster.output("busy") == WRITTEN
    eventually("the node is gone", lambda: set(cluster.states()) == WANTED)


def test_all_workers_busy_scale_to_none_only_after_the_job(cluster: Cluster) -> None:
    """S013, feature row 59."""
    by_apply(cluster, 1)
    cluster.until_idle("compute-0")
    job = cluster.submit(LINES.format("last"), "--nodelist=compute-0", "--output=/shared/last")
    cluster.until_job(job, "RUNNING")
    by_scale(cluster, 0)
    eventually("it drains", lambda: _draining(cluster, "compute-0"))
    tell(cluster, "last")
    states = cluster.until(
        "pods", lambda pods: _job_when_deleted(cluster, job, pods), "compute-0 is deleted"
    )
    assert states == ["COMPLETED"]
    assert cluster.output("last") == WRITTEN
    cluster.until("pods", lambda pods: not _workers(pods), "no worker is left", 60)
    done = cluster.job(job)
    assert (done["JobState"], done["ExitCode"]) == ("COMPLETED", "0:0")
    eventually("no node is left", lambda: cluster.states() == {}, SLURM_SECONDS)
    wait_counts(cluster, replicas=0, slurmIdle=0, slurmDrain=0)


def test_a_job_that_waits_for_resources_runs_when_they_come(cluster: Cluster) -> None:
    """S062, feature row 59: from none."""
    by_apply(cluster, 1)
    cluster.until_idle("compute-0")
    full = ("--exclusive", "--nodes=1", "--output=/dev/null")
    first = cluster.submit("sleep 600", *full)
    cluster.until_job(first, "RUNNING")
    second = cluster.submit("sleep 1", *full)
    third = cluster.submit("sleep 1", *full)
    eventually("they wait", lambda: {_why(cluster, second), _why(cluster, third)} <= WAITING)
    queue = cluster.run("squeue", "-h", "-o", "%i %j %T %r")
    assert any("PENDING Resources" in line for line in queue.splitlines())
    by_scale(cluster, 2)
    for job in (second, third):
        done = cluster.until_job(job, "COMPLETED", timeout=60)
        assert done["NodeList"] == "compute-1"
    assert cluster.job(first)["JobState"] == "RUNNING"
    cluster.run("scancel", str(first))


WAITING = {"Resources", "Priority"}


def _waits_for(found: dict[str, Json], job: int) -> bool:
    return f"job {job} " in f"{condition(found['compute'], 'Ready').get('message', '')} "


def tell(cluster: Cluster, name: str) -> None:
    cluster.site.node.run("touch", f"{cluster.shared}/told-{name}")


def wait_counts(cluster: Cluster, **counts: int) -> None:
    cluster.until(
        "nodesets",
        lambda found: _counts(found["compute"], counts) == counts,
        f"the status has {counts}",
        SLURM_SECONDS,
    )


def _counts(nodeset: Json, names: dict[str, int]) -> dict[str, int]:
    return {name: nodeset["status"].get(name, 0) for name in names}


def _job_when_deleted(cluster: Cluster, job: int, pods: dict[str, Json]) -> list[str] | None:
    pod = pods.get("compute-0")
    if pod is not None and "deletionTimestamp" not in pod["metadata"]:
        return None
    return cluster.rest("GET", f"job/{job}")["jobs"][0]["job_state"]


def _workers(pods: dict[str, Json]) -> dict[str, Json]:
    return {name: pod for name, pod in pods.items() if name.startswith("compute-")}


def _running(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") == "Running"


def _draining(cluster: Cluster, name: str) -> Json | None:
    node = cluster.node(name)
    return node if "DRAIN" in node.get("state", ()) else None


def _why(cluster: Cluster, job: int) -> str:
    return cluster.job(job).get("Reason", "")


def _row(table: str) -> dict[str, str]:
    head, row = (line.split() for line in table.splitlines()[:2])
    return dict(zip(head, row, strict=False))
