"""Slurm 24.11, the oldest release that is supported, from Debian's packages: a life of a cluster.

What other files show of 26.05 in depth is shown here once each, and then slurmctld is upgraded.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.changes import partition_shown, slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
from penstock.local.images import build_slurm
from penstock.local.recipes import LATEST, OLDEST, Release, reference
from penstock.local.target import Images

CORDON = "nodeset.slinky.slurm.net/pod-cordon"
POD = "slurm-controller-0"
CLAIM = {
    "enabled": True,
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}


def image(role: str, release: Release = OLDEST) -> Json:
    return {"image": reference(role, release.tag)}


def controller(extra: str = "", release: Release = OLDEST, **spec: Any) -> Json:
    return manifests.controller(
        manifests.EXTRA_CONF + extra,
        persistence=CLAIM,
        slurmctld=image("slurmctld", release),
        **spec,
    )


def nodeset(replicas: int) -> Json:
    return manifests.nodeset(replicas, slurmd=image("slurmd"))


def partition(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "penstock.dev/v1alpha1",
        "kind": "Partition",
        "metadata": {"name": name},
        "spec": {"controllerRef": {"name": manifests.NAME}, **spec},
    }


@pytest.fixture(scope="module")
def older(site: Site) -> Images:
    """The node has images of both releases."""
    built = build_slurm(OLDEST)
    if not {one.exact for one in built.values()} <= set(site.node.images()):
        for path in {one.path for one in built.values()}:
            site.node.import_image(path)
    return site.images


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster], older: Images) -> Cluster:
    del older
    cluster = clusters("older")
    cluster.parser = "v0.0.42"
    cluster.create(
        controller(metrics={"enabled": True}),
        manifests.restapi(slurmrestd=image("slurmrestd")),
        nodeset(2),
    )
    cluster.until_ready("controllers", manifests.NAME)
    cluster.until_idle("compute-0", "compute-1")
    cluster.until_ready("nodesets", "compute")
    return cluster


def until_told(cluster: Cluster, type_: str, status: str, words: str = "") -> Json:
    """Wait for a condition of the Controller."""

    def told(found: dict[str, Json]) -> Json | None:
        one = condition(found[manifests.NAME], type_)
        return one if one.get("status") == status and words in one.get("message", "") else None

    return cluster.until("controllers", told, f"{type_} is {status}: {words}", 120)


def template(cluster: Cluster) -> Json:
    return cluster.get("statefulsets", "slurm-controller")["spec"]["template"]


def test_a_cluster_of_24_11_becomes_ready_and_runs_jobs_on_both_workers(cluster: Cluster) -> None:
    status = cluster.get("controllers", manifests.NAME)["status"]
    assert status["slurmVersion"].startswith("24.11.")
    assert status["stateVersion"] == status["slurmVersion"]
    (container,) = template(cluster)["spec"]["containers"]
    assert "tcpSocket" in container["readinessProbe"]
    output = "cd /tmp && srun -N2 hostname | sort"
    assert cluster.run("sh", "-c", output).split() == ["compute-0", "compute-1"]
    told = until_told(cluster, "Monitored", "False", "24.11 has no metrics")
    assert told["reason"] == "MetricsUnsupported"


def test_a_worker_is_drained_by_annotation_and_taken_back(cluster: Cluster) -> None:
    cluster.kubectl("annotate", "pod", "compute-1", f"{CORDON}=true")
    eventually("it drains", lambda: "DRAIN" in cluster.states()["compute-1"])
    assert cluster.node("compute-1")["reason"].startswith("slurm-operator: ")
    cluster.kubectl("annotate", "pod", "compute-1", f"{CORDON}-")
    cluster.until_idle("compute-0", "compute-1")


def test_scale_in_takes_idle_workers_and_leaves_the_busy_one(cluster: Cluster) -> None:
    cluster.apply(nodeset(3))
    cluster.until_idle("compute-0", "compute-1", "compute-2")
    job = cluster.submit("sleep 600", "--nodelist=compute-0", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    cluster.apply(nodeset(1))
    cluster.until("pods", lambda pods: "compute-1" not in pods and "compute-2" not in pods, "gone")
    eventually("their records are gone", lambda: set(cluster.states()) == {"compute-0"})
    assert cluster.job(job)["JobState"] == "RUNNING"
    cluster.run("scancel", str(job))
    cluster.apply(nodeset(2))
    cluster.until_idle("compute-0", "compute-1")


def test_a_configuration_is_rejected_by_name_and_a_good_one_taken_over(cluster: Cluster) -> None:
    before = slurmctld(cluster)
    cluster.apply(controller("HealthCheckTimeout=30\n"))
    told = until_told(cluster, "ConfigValid", "False", "HealthCheckTimeout")
    assert "Slurm 24.11 does not know HealthCheckTimeout" in told["message"]
    cluster.apply(controller("Bogus=1\n"))
    until_told(cluster, "ConfigValid", "False", "unrecognized key: Bogus")
    cluster.apply(controller("SlurmctldDebug=verbose\n"))
    eventually(
        "it is in effect",
        lambda: "verbose" in cluster.run("sh", "-c", "scontrol show config | grep SlurmctldDebug "),
    )
    until_told(cluster, "ConfigApplied", "True")
    assert slurmctld(cluster) == before


def test_partitions_come_by_reconfigure_and_are_not_reported_as_drifted(cluster: Cluster) -> None:
    cluster.apply(partition("long", nodeSets=["compute"], maxTime="2:00:00"))
    cluster.until_ready("partitions", "long")
    cluster.apply(partition("long", nodeSets=["compute"], maxTime="3:00:00", drift="Adopt"))
    eventually("it is changed", lambda: partition_shown(cluster, "long")["MaxTime"] == "03:00:00")
    found = cluster.until_ready("partitions", "long")
    assert condition(found, "Drifted").get("status") != "True"
    for kind, name in (("controllers", manifests.NAME), ("nodesets", "compute")):
        assert condition(cluster.until_ready(kind, name), "Drifted").get("status") != "True"
    # What somebody changes is seen all the same, where the parser tells it.
    cluster.run("scontrol", "update", "PartitionName=long", "MaxTime=30")
    cluster.until(
        "partitions",
        lambda found: found["long"]["spec"]["maxTime"] != "3:00:00",
        "it is adopted",
    )
    spec = cluster.get("partitions", "long")["spec"]
    assert spec.keys() <= {"controllerRef", "nodeSets", "maxTime", "drift", "default"}


def test_a_scheduled_update_reports_that_this_slurmrestd_makes_no_reservation(
    cluster: Cluster,
) -> None:
    start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400))
    scheduled = {
        "type": "ScheduledUpdate",
        "scheduledUpdate": {"startTime": start, "duration": "1h"},
    }
    spec = {"updateStrategy": scheduled, "slurmd": {"env": [{"name": "A", "value": "1"}]}}
    cluster.patch("nodeset", "compute", {"spec": spec})
    cluster.until(
        "nodesets",
        lambda found: (
            condition(found["compute"], "ReservationCreated").get("reason")
            == "ReservationUnsupported"
        ),
        "it says so",
    )
    plain = {"updateStrategy": {"type": "RollingUpdate", "scheduledUpdate": None}}
    cluster.patch("nodeset", "compute", {"spec": {**plain, "slurmd": {"env": None}}})
    cluster.until_ready("nodesets", "compute")


def unnamed(site: Site, name: str, image_: str) -> Json:
    """A NodeSet `odd` whose image has a tag that does not name its release."""
    tagged = f"localhost/penstock-test/slurmd:{name}"
    tag = ("/usr/bin/ctr", "--namespace", "k8s.io", "images", "tag", "--force")
    site.node.run(*tag, image_, tagged)
    return manifests.nodeset(1, "odd", slurmd={"image": tagged}, partition={"enabled": False})


def until_unsupported(cluster: Cluster, words: str) -> None:
    """Wait until the NodeSet `odd` is reported with these words, then delete it.

    A slurmd that runs and never registered is not the operator's to delete.
    """

    def told(found: dict[str, Json]) -> bool:
        one = condition(found["odd"], "Ready")
        return one.get("reason") == "SlurmdVersionUnsupported" and words in one["message"]

    cluster.until("nodesets", told, words, 120)
    cluster.kubectl("delete", "nodeset", "odd", "--wait=false")
    if "odd-0" not in cluster.states():
        cluster.kubectl("delete", "pod", "odd-0", "--wait=false")
    cluster.until("pods", lambda pods: "odd-0" not in pods, "its worker is gone", 120)


def test_a_newer_slurmd_is_named_and_not_taken_for_one_with_another_key(
    site: Site, cluster: Cluster
) -> None:
    newer = site.images.slurm.replace("{role}", "slurmd")
    cluster.apply(unnamed(site, "newer", newer))
    until_unsupported(cluster, "slurmctld 24.11 works with slurmd 23.02 to 24.11")


def test_slurmctld_is_upgraded_under_a_job_and_the_way_back_is_rejected(cluster: Cluster) -> None:
    cluster.until_idle("compute-0", "compute-1")
    job = cluster.submit("sleep 600", "--nodelist=compute-0", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    cluster.apply(controller("SlurmctldDebug=verbose\n", LATEST))

    def upgraded(found: dict[str, Json]) -> bool:
        return found[manifests.NAME]["status"].get("stateVersion", "").startswith("26.05")

    cluster.until("controllers", upgraded, "26.05 serves", 180)
    cluster.until_ready("controllers", manifests.NAME)
    assert cluster.job(job)["JobState"] == "RUNNING"

    # Then slurmrestd: the operator goes on with the better parser at once.
    cluster.apply(manifests.restapi(slurmrestd=image("slurmrestd", LATEST)))
    cluster.until_ready("restapis", manifests.NAME)
    cluster.apply(partition("late", nodeSets=["compute"], maxTime="1:00:00"))
    cluster.until_ready("partitions", "late")
    minutes = itertools.count(10)

    def is_changed_by_a_call() -> bool:
        """The former slurmrestd may still answer once, which has no call for partitions."""
        limit = f"1:{next(minutes)}:00"
        cluster.apply(partition("late", nodeSets=["compute"], maxTime=limit))
        cluster.until_ready("partitions", "late")
        notes = cluster.kubectl("get", "events.events.k8s.io", "-o", "jsonpath={.items[*].note}")
        return "without a reconfigure" in notes

    eventually("a call of slurmrestd changes it", is_changed_by_a_call, 90, every=3)

    uid, before = cluster.uids()[POD], template(cluster)
    refused = cluster.site.rejected(
        *("-n", cluster.namespace, "patch", "controller", manifests.NAME, "--type=merge", "-p"),
        json.dumps({"spec": {"slurmctld": image("slurmctld")}}),
    )
    assert "slurmctld 24.11 cannot read the state that slurmctld 26.05 has written" in refused

    # Without the webhook's word it is refused when it is looked at.
    with cluster.site.without_operator():
        cluster.patch("controller", manifests.NAME, {"spec": {"slurmctld": image("slurmctld")}})
    told = until_told(cluster, "Ready", "False", "use an image of 26.05 or later")
    assert told["reason"] == "SlurmVersionRefused"
    assert cluster.uids()[POD] == uid
    assert template(cluster) == before
    assert cluster.job(job)["JobState"] == "RUNNING"
    cluster.patch("controller", manifests.NAME, {"spec": {"slurmctld": image("slurmctld", LATEST)}})
    cluster.until_ready("controllers", manifests.NAME)
    assert cluster.uids()[POD] == uid
    cluster.run("scancel", str(job))


def test_an_older_slurmd_whose_image_does_not_name_its_release_is_reported(
    site: Site, cluster: Cluster
) -> None:
    """It registers and takes jobs, and its pod never answers the probes."""
    cluster.apply(unnamed(site, "older", reference("slurmd", OLDEST.tag)))
    until_unsupported(cluster, "slurmd 24.11 answers no HTTP probe")
