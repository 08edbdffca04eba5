"""Partitions on real Slurm: changed in slurmctld at once, refused in its words, the same later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.changes import partition_shown as shown
from e2e_kit.changes import slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually
from penstock.local.errors import LocalError

RAW = "PartitionName=raw Nodes=ALL MaxTime={}\n"


def partition(object_name: str, /, **spec: Any) -> Json:
    """A Partition of the cluster."""
    return {
        "apiVersion": "penstock.dev/v1alpha1",
        "kind": "Partition",
        "metadata": {"name": object_name},
        "spec": {"controllerRef": {"name": manifests.NAME}, **spec},
    }


def until_shown(cluster: Cluster, name: str, **wanted: str) -> None:
    """Wait until slurmctld shows these values."""

    def holds() -> bool:
        found = shown(cluster, name)
        return bool(found) and all(found.get(key) == value for key, value in wanted.items())

    eventually(f"partition {name} shows {wanted}", holds, 30)


def file(cluster: Cluster) -> str:
    """The slurm.conf with which slurmctld starts next."""
    return cluster.get("configmaps", "slurm-config")["data"]["slurm.conf"]


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("partitions")
    cluster.create(
        manifests.controller(manifests.EXTRA_CONF + RAW.format("60")),
        manifests.restapi(),
        manifests.nodeset(2),
        partition("early", nodeSets=["compute"]),
    )
    cluster.until_idle("compute-0", "compute-1")
    cluster.until_ready("partitions", "early")
    return cluster


@pytest.mark.needs_slurm("26.05", "slurmrestd changes partitions, without a reconfigure")
def test_partitions_are_changed_in_slurmctld_and_are_the_same_after_its_restart(
    cluster: Cluster,
) -> None:
    """S019, feature rows 16, 25, 26 and 27: and slurmrestd is the same, too."""
    started, rests = slurmctld(cluster), cluster.uids("app.kubernetes.io/name=slurmrestd")

    # Each of the three ways to declare one.
    cluster.apply(partition("early", nodeSets=["compute"], maxTime="2:00:00", state="DRAIN"))
    until_shown(cluster, "early", MaxTime="02:00:00", State="DRAIN", Nodes="compute-[0-1]")
    cluster.apply(manifests.nodeset(2, partition={"enabled": True, "config": "MaxTime=30"}))
    until_shown(cluster, "compute", MaxTime="00:30:00")
    conf = manifests.EXTRA_CONF + RAW.format("90")
    cluster.apply(manifests.controller(conf))
    until_shown(cluster, "raw", MaxTime="01:30:00")

    # Nodes one by one: jobs go there and nowhere else.
    cluster.apply(partition("half", nodes=["compute-1", "compute-7"]))
    until_shown(cluster, "half", Nodes="compute-1")
    told = condition(cluster.until_ready("partitions", "half"), "Ready")
    assert "compute-7" in told["message"]
    job = cluster.submit("hostname; sleep 1", "-p", "half")
    assert cluster.until_job(job, "COMPLETED")["NodeList"] == "compute-1"
    cluster.patch("partitions", "half", {"spec": {"nodes": ["ALL", "-compute-1"]}})
    until_shown(cluster, "half", Nodes="compute-0")

    # A refusal, in slurmctld's words, which touches no other partition and not the file.
    cluster.apply(partition("early", nodeSets=["compute"], allowQos=["nosuch"]))
    refused = cluster.until(
        "partitions",
        lambda found: (
            found["early"]
            if condition(found["early"], "Ready").get("reason") == "PartitionRefused"
            else None
        ),
        "the refusal is told",
    )
    assert "Invalid qos specification" in condition(refused, "Ready")["message"]
    cluster.apply(partition("other", nodeSets=["compute"]))
    until_shown(cluster, "other", Nodes="compute-[0-1]")
    assert "nosuch" not in file(cluster)
    assert slurmctld(cluster) == started

    assert cluster.uids("app.kubernetes.io/name=slurmrestd") == rests

    # What slurmctld starts on next is what it has.
    eventually("the file follows", lambda: "PartitionName=other" in file(cluster))
    before = {name: shown(cluster, name) for name in ("early", "compute", "raw", "half", "other")}
    assert before["early"]["MaxTime"] == "02:00:00"
    cluster.kill("slurmctld")
    eventually("slurmctld was started again", lambda: slurmctld(cluster)[1] == started[1] + 1)
    for name, values in before.items():
        kept = {key: values[key] for key in ("Nodes", "MaxTime", "State", "Default")}
        until_shown(cluster, name, **kept)

    # And what goes, goes.
    cluster.kubectl("delete", "partition", "other", "half")
    eventually("half is gone", lambda: not shown(cluster, "half") and not shown(cluster, "other"))
    eventually(
        "no node is marked any more",
        lambda: all(
            one["features"] == ["compute"] for one in cluster.rest("GET", "nodes/")["nodes"]
        ),
    )


def test_jobs_wait_for_a_partition_that_is_down_and_one_that_is_not_enabled_takes_none(
    cluster: Cluster,
) -> None:
    """S063: setting it UP, or enabling it, is all that is needed."""

    def own(config: str, *, enabled: bool = True) -> Json:
        return manifests.nodeset(2, partition={"enabled": enabled, "config": config})

    job = ("-p", "compute", "--output=/dev/null")
    cluster.apply(own("State=DOWN"))
    until_shown(cluster, "compute", State="DOWN")
    waiting = cluster.submit("true", *job)
    queue = ("squeue", "--noheader", "-j", str(waiting), "-o", "%i %j %T %r")
    wanted = f"{waiting} sbatch PENDING PartitionDown"
    eventually("the queue says why", lambda: cluster.run(*queue).strip() == wanted, 60, every=1)
    cluster.apply(own("State=UP"))
    assert cluster.until_job(waiting, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"

    cluster.apply(own("State=UP", enabled=False))
    eventually("the partition is gone", lambda: not shown(cluster, "compute"), 60, every=1)
    with pytest.raises(LocalError, match=r"(?i)invalid partition"):
        cluster.submit("true", *job)
    cluster.apply(own("State=UP"))
    until_shown(cluster, "compute", State="UP", Nodes="compute-[0-1]")
    enabled = cluster.submit("true", *job)
    assert cluster.until_job(enabled, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
