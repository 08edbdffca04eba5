"""Drains by annotation, by hand and by Slurm's own commands: each keeps to its owner."""

import json
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.cluster import Cluster
from e2e_kit.release import PARSER, lacks
from e2e_kit.site import FAILED, eventually
from penstock.local.errors import LocalError
from penstock.slurm.versions import PARSERS

SHORT = "slinky.slurm.net/pod-cordon"
LONG = "nodeset.slinky.slurm.net/pod-cordon"
WORKERS = ("compute-0", "compute-1", "compute-2")
NODE = "compute-2"


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("drain")
    cluster.create(manifests.controller(), manifests.restapi(), manifests.nodeset(3))
    cluster.until_ready("nodesets", "compute")
    cluster.until_idle(*WORKERS)
    return cluster


@pytest.fixture
def job(cluster: Cluster) -> Generator[int]:
    """A job that runs on the node."""
    number = cluster.submit("sleep 600", "--nodelist", NODE, "--output=/dev/null")
    cluster.until_job(number, "RUNNING")
    yield number
    assert cluster.job(number)["JobState"] == "RUNNING"
    cluster.run("scancel", str(number))
    cluster.until_idle(*WORKERS)


@pytest.mark.parametrize("keys", [(SHORT,), (LONG,), (SHORT, LONG), (LONG, SHORT)])
def test_an_annotation_drains_until_all_its_spellings_are_gone(
    cluster: Cluster, job: int, keys: tuple[str, ...], figure: Callable[[str], None]
) -> None:
    """D5, S016, feature row 32."""
    annotate(cluster, *(f"{key}=true" for key in keys))
    began = time.monotonic()
    eventually("it drains", lambda: "DRAIN" in cluster.states()[NODE])
    figure(f"{' and '.join(keys)}: drained after {time.monotonic() - began:.1f} s (limit 5 s)")
    assert cluster.node(NODE)["reason"].startswith("slurm-operator: ")
    assert cluster.job(job)["JobState"] == "RUNNING"
    cluster.poke(10)
    assert "DRAIN" in cluster.states()[NODE]
    for key in keys[:-1]:
        annotate(cluster, f"{key}-")
        cluster.poke(3)
        assert "DRAIN" in cluster.states()[NODE]
    annotate(cluster, f"{keys[-1]}-")
    eventually("it is back", lambda: "DRAIN" not in cluster.states()[NODE])


def test_no_new_job_lands_on_a_cordoned_worker(cluster: Cluster) -> None:
    """S016."""
    annotate(cluster, f"{SHORT}=true")
    eventually("it drains", lambda: "DRAIN" in cluster.states()[NODE])
    waiting = cluster.submit("true", "--nodelist", NODE, "--output=/dev/null")
    other = cluster.submit("true", "--output=/dev/null")
    assert cluster.until_job(other, "COMPLETED")["NodeList"] != NODE
    assert cluster.job(waiting)["JobState"] == "PENDING"
    annotate(cluster, f"{SHORT}-")
    assert cluster.until_job(waiting, "COMPLETED")["NodeList"] == NODE


def test_a_hand_drain_stands_through_scaling_restarts_and_a_new_pod(cluster: Cluster) -> None:
    """D9, D24, S017, feature rows 35 and 47."""
    reason = "Manual maintenance"
    seen = {"type": "test.penstock.dev/Seen", "status": "True", "reason": "ByHand"}
    patch = json.dumps({"status": {"conditions": [seen]}})
    by_others = ("--subresource=status", "--type=strategic", "-p", patch)
    cluster.kubectl("patch", "pod", NODE, *by_others)
    assert by_rest(cluster, reason, PARSER)["errors"] == []
    shown = cluster.run("scontrol", "show", "node", NODE)
    assert "DRAIN" in shown
    assert f"Reason={reason}" in shown
    cluster.until(
        "nodesets", lambda found: found["compute"]["status"].get("slurmDrain") == 1, "it is counted"
    )

    def told(pods: dict[str, Json]) -> bool:
        return (
            NODE in pods and condition(pods[NODE], "SlurmNodeStateDrain").get("message") == reason
        )

    cluster.until("pods", told, "the pod tells the reason")
    # What others say of the pod is there still, and so is what the kubelet says.
    pod = cluster.get("pods", NODE)
    assert seen.items() <= condition(pod, "test.penstock.dev/Seen").items()
    assert condition(pod, "Ready")["status"] == "True"
    cluster.kubectl("scale", "nodeset/compute", "--replicas=4")
    eventually("compute-3 is idle", lambda: cluster.states().get("compute-3") == {"IDLE"})
    assert stands(cluster, reason)
    before = cluster.site.operator_pod()["metadata"]["uid"]
    cluster.site.kubectl("-n", "penstock-system", "delete", "pod", "--all", "--wait=true")
    assert cluster.site.operator_pod()["metadata"]["uid"] != before
    cluster.poke(3)
    assert stands(cluster, reason)
    uid = cluster.get("pods", NODE)["metadata"]["uid"]
    cluster.kubectl("delete", "pod", NODE, "--wait=true")

    def moved(pods: dict[str, Json]) -> bool:
        pod = pods.get(NODE)
        return (
            pod is not None
            and pod["metadata"]["uid"] != uid
            and condition(pod, "Ready").get("status") == "True"
        )

    cluster.until("pods", moved, "a new pod is ready")
    eventually("it is drained and answers", lambda: cluster.states()[NODE] == {"IDLE", "DRAIN"})
    assert stands(cluster, reason)
    # Until the operator has seen that, compute-2 would be the one to go: it counts as not ready.
    cluster.until(
        "nodesets",
        lambda found: found["compute"]["status"].get("readyReplicas") == 4,
        "the operator has seen it",
    )
    cluster.kubectl("scale", "nodeset/compute", "--replicas=3")
    cluster.until("pods", lambda pods: "compute-3" not in pods, "compute-3 is gone")
    assert stands(cluster, reason)
    cluster.run("scontrol", "update", f"nodename={NODE}", "state=resume")
    cluster.until_idle(*WORKERS)


def test_slurmrestd_needs_the_content_type_json(cluster: Cluster) -> None:
    """S017: as curl sends a body by default, slurmrestd does not read it; so the docs say."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, text = post(cluster, PARSER, drain("by curl"), form)
    # 24.11 answers 400, 26.05 answers 500.
    assert (status >= FAILED, "DRAIN" in cluster.states()[NODE]) == (True, False), text


SERVED = [parser for parser, since in PARSERS.items() if not lacks(str(since))]


@pytest.mark.parametrize("version", SERVED)
def test_each_version_of_the_api_drains(cluster: Cluster, version: str) -> None:
    """S017."""
    assert by_rest(cluster, f"by {version}", version)["errors"] == []
    assert stands(cluster, f"by {version}")
    cluster.run("scontrol", "update", f"nodename={NODE}", "state=resume")
    cluster.until_idle(*WORKERS)


def test_a_partition_is_drained_from_the_slurmctld_pod(cluster: Cluster, job: int) -> None:
    """S018."""
    queued = cluster.submit("true", "--nodelist", NODE, "--exclusive", "--output=/dev/null")
    cluster.run("scontrol", "update", "partitionname=compute", "state=drain")
    assert cluster.run("sinfo", "-h", "-p", "compute", "-o", "%a").split()[0] == "drain"
    assert cluster.job(job)["JobState"] == "RUNNING"
    assert cluster.job(queued)["JobState"] == "PENDING"
    with pytest.raises(LocalError, match="partition"):
        cluster.submit("true", "--output=/dev/null")
    cluster.run("scontrol", "update", "partitionname=compute", "state=up")
    cluster.run("scancel", str(queued))


def test_asking_slurm_for_a_node_that_no_nodeset_has_adds_none(cluster: Cluster) -> None:
    """S014."""
    before = cluster.get("nodesets", "compute")["spec"]
    answer = cluster.rest("POST", "node/compute-9", {"state": ["RESUME"]})
    assert answer["errors"]
    assert answer["http"] >= 400
    cluster.poke(2)
    assert cluster.get("nodesets", "compute")["spec"] == before
    assert set(cluster.pods()) == set(WORKERS)
    assert set(cluster.states()) == set(WORKERS)


USER = "games"
"""A user whom the images know."""


def test_a_pipeline_submits_as_its_user_with_a_token_of_scontrol(cluster: Cluster) -> None:
    """D43, S038, feature row 16."""
    given = cluster.run("scontrol", "token", f"username={USER}", "lifespan=600").strip()
    token = given.removeprefix("SLURM_JWT=")
    wanted = cluster.on("compute-0", f"id -u {USER}; id -g {USER}").split()
    body = {
        "script": "#!/bin/sh\nid -u; id -g; id -un\n",
        "job": {
            "name": "pipeline",
            "partition": "compute",
            "environment": ["PATH=/usr/bin:/bin", "HOME=/tmp"],
            "current_working_directory": "/tmp",
            "standard_output": "/tmp/pipeline.out",
            "required_nodes": ["compute-0"],
        },
    }
    headers = {"X-SLURM-USER-TOKEN": token, "Content-Type": "application/json"}
    status, text = cluster.http("POST", f"/slurm/{PARSER}/job/submit", json.dumps(body), headers)
    answer: dict[str, Any] = json.loads(text)
    assert (status, answer["errors"]) == (200, [])
    done = cluster.until_job(answer["job_id"], "COMPLETED", "FAILED", "CANCELLED")
    assert (done["JobState"], done["ExitCode"]) == ("COMPLETED", "0:0")
    assert done["UserId"] == f"{USER}({wanted[0]})"
    assert cluster.on("compute-0", "cat /tmp/pipeline.out").split() == [*wanted, USER]


def test_fifty_submissions_in_a_row_succeed_and_a_bad_token_does_not(cluster: Cluster) -> None:
    """S038."""
    job = {
        "environment": ["PATH=/usr/bin:/bin"],
        "current_working_directory": "/tmp",
        "standard_output": "/dev/null",
    }
    body = {"script": "#!/bin/sh\ntrue\n", "job": job}
    numbers = {cluster.rest("POST", "job/submit", body, user=USER)["job_id"] for _ in range(50)}
    assert len(numbers) == 50
    headers = {"X-SLURM-USER-TOKEN": cluster.expired(USER), "Content-Type": "application/json"}
    status, _ = cluster.http("POST", f"/slurm/{PARSER}/job/submit", json.dumps(body), headers)
    assert status >= 400
    cluster.run("scancel", f"--user={USER}")


def annotate(cluster: Cluster, *marks: str) -> None:
    cluster.kubectl("annotate", "pod", NODE, *marks)


def drain(reason: str) -> str:
    return json.dumps({"state": ["DRAIN"], "reason": reason})


def post(cluster: Cluster, version: str, body: str, headers: dict[str, str]) -> tuple[int, str]:
    token = {"X-SLURM-USER-TOKEN": cluster.token("slurm")}
    return cluster.http("POST", f"/slurm/{version}/node/{NODE}", body, {**headers, **token})


def by_rest(cluster: Cluster, reason: str, version: str) -> Json:
    status, text = post(cluster, version, drain(reason), {"Content-Type": "application/json"})
    return {"http": status, **json.loads(text)}


def stands(cluster: Cluster, reason: str) -> bool:
    node = cluster.node(NODE)
    return "DRAIN" in node["state"] and node["reason"] == reason
