"""What is changed by scontrol on real Slurm: told, put back, or declared for good."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.changes import partition_shown as shown
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually

TOLD_S = 30.0
"""Within which a change is told."""
RAW = "# By hand.\nPartitionName=raw Nodes=ALL  MaxTime=5 # short\n"
EXTRA_CONF = manifests.EXTRA_CONF + RAW
NODESET, CONTROLLER = ("nodesets", "compute"), ("controllers", manifests.NAME)
PARTITION = ("partitions", "part")


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("drift")
    cluster.create(
        manifests.controller(EXTRA_CONF, persistence={"enabled": True}),
        manifests.restapi(),
        manifests.nodeset(2, extraConf="Feature=fast"),
        {
            "apiVersion": "penstock.dev/v1alpha1",
            "kind": "Partition",
            "metadata": {"name": "part"},
            "spec": {
                "controllerRef": {"name": manifests.NAME},
                "nodeSets": ["compute"],
                "maxTime": 60,
            },
        },
    )
    cluster.until_idle("compute-0", "compute-1")
    cluster.until_ready(*PARTITION)
    cluster.until_ready(*NODESET)
    cluster.until_ready(*CONTROLLER)
    return cluster


def choose(cluster: Cluster, word: str) -> None:
    """Choose it for all objects."""
    for resource, name in (NODESET, CONTROLLER):
        mark = f"penstock.dev/drift={word}"
        cluster.kubectl("annotate", "--overwrite", resource, name, mark)
    cluster.patch(*PARTITION, {"spec": {"drift": word}})


def until_told(
    cluster: Cluster, of: tuple[str, str], *words: str, began: float | None = None
) -> float:
    """Wait until the condition says so; seconds that it took, from now unless told otherwise."""
    began = time.monotonic() if began is None else began

    def told(found: dict[str, Json]) -> bool:
        one = condition(found[of[1]], "Drifted")
        return one.get("status") == "True" and all(word in one["message"] for word in words)

    cluster.until(of[0], told, f"{of} tells {words}", began + TOLD_S - time.monotonic())
    return time.monotonic() - began


def until_agreed(cluster: Cluster, *objects: tuple[str, str]) -> None:
    """Wait until nothing differs."""
    for resource, name in objects:
        cluster.until(
            resource,
            lambda found, name=name: condition(found[name], "Drifted").get("status") == "False",
            f"{resource} {name} is as declared",
        )


def until_noted(cluster: Cluster, reason: str, words: str) -> None:
    """Wait for an event of that reason."""
    cluster.site.until_event(cluster.namespace, words, reason)


def scontrol(cluster: Cluster, *words: str) -> None:
    cluster.run("scontrol", *words)


def until_shown(cluster: Cluster, name: str, **wanted: str) -> None:
    """Wait until slurmctld shows these values."""
    eventually(
        f"partition {name} shows {wanted}", lambda: wanted.items() <= shown(cluster, name).items()
    )


def until_nodes(cluster: Cluster, weight: int, *features: str) -> None:
    """Wait until all nodes show these values."""
    eventually(
        f"all nodes have weight {weight} and {features}",
        lambda: all(
            (one["weight"], set(one["features"])) == (weight, set(features))
            for one in cluster.rest("GET", "nodes/")["nodes"]
        ),
    )


def restart_slurmctld(cluster: Cluster) -> None:
    """Delete slurmctld's pod, and wait for the next one to serve."""
    name = f"{manifests.NAME}-controller-0"
    before = cluster.get("pods", name)["metadata"]["uid"]
    cluster.kubectl("delete", "pod", name)
    cluster.until(
        "pods",
        lambda found: (
            name in found
            and found[name]["metadata"]["uid"] != before
            and condition(found[name], "Ready").get("status") == "True"
        ),
        "slurmctld is back",
    )
    cluster.until_ready(*CONTROLLER)
    cluster.until_idle("compute-0", "compute-1", timeout=180)


def test_what_scontrol_changes_is_reported_in_time_with_field_and_both_values(
    cluster: Cluster,
) -> None:
    """S020, S150."""
    # What belongs to different objects is changed at the same time.
    scontrol(cluster, "update", "partitionname=raw", "nodes=compute-0")
    scontrol(cluster, "update", "partitionname=compute", "state=down")
    scontrol(cluster, "update", "partitionname=part", "maxtime=7")
    began = time.monotonic()
    words = "MaxTime is 7, declared 60"
    took = {"partition": until_told(cluster, PARTITION, words, began=began)}
    words = "State is DOWN, declared UP"
    took["of a NodeSet"] = until_told(cluster, NODESET, words, began=began)
    words = "Nodes is compute-0, declared"
    took["of extraConf"] = until_told(cluster, CONTROLLER, words, began=began)
    scontrol(cluster, "create", "partitionname=byhand", "nodes=ALL")
    scontrol(cluster, "update", "nodename=compute-[0-1]", "weight=5")
    began = time.monotonic()
    words = "byhand was made in Slurm"
    took["made"] = until_told(cluster, CONTROLLER, words, began=began)
    words = "nodes compute-[0-1]: Weight is 5, declared 1"
    took["nodes"] = until_told(cluster, NODESET, words, began=began)
    scontrol(cluster, "update", "nodename=compute-1", "features=compute,fast,mine")
    words = "node compute-1: Features is compute,fast,mine, declared compute,fast"
    took["features"] = until_told(cluster, NODESET, words)
    print("\ntold after " + ", ".join(f"{what} {seconds:.1f} s" for what, seconds in took.items()))
    words = "part was changed in Slurm: MaxTime is 7, declared 60"
    until_noted(cluster, "PartitionDrifted", words)
    until_noted(cluster, "NodesDrifted", "compute-[0-1]: Weight is 5")
    # It is told, and nothing else.
    for of in (PARTITION, NODESET, CONTROLLER):
        cluster.until_ready(*of)
    assert shown(cluster, "part")["MaxTime"] == "00:07:00"


CALLS = pytest.mark.needs_slurm("26.05", "slurmrestd changes partitions, so drift is reverted")


@CALLS
def test_what_is_put_back_stays_so(cluster: Cluster) -> None:
    """S150."""
    choose(cluster, "Revert")
    until_shown(cluster, "part", MaxTime="01:00:00")
    until_shown(cluster, "compute", State="UP")
    until_shown(cluster, "raw", Nodes="compute-[0-1]", MaxTime="00:05:00")
    eventually("byhand is gone", lambda: not shown(cluster, "byhand"))
    until_nodes(cluster, 1, "compute", "fast")
    until_agreed(cluster, PARTITION, NODESET, CONTROLLER)
    scontrol(cluster, "delete", "partitionname=raw")
    until_shown(cluster, "raw", Nodes="compute-[0-1]", MaxTime="00:05:00")
    until_noted(cluster, "PartitionReverted", "raw was deleted")


@CALLS
def test_what_is_adopted_outlives_slurmctld(cluster: Cluster) -> None:
    """S150."""
    choose(cluster, "Adopt")
    workers = cluster.uids("app.kubernetes.io/name=slurmd")
    scontrol(cluster, "update", "partitionname=part", "maxtime=9")
    scontrol(cluster, "update", "partitionname=compute", "maxtime=11")
    scontrol(cluster, "update", "partitionname=raw", "maxtime=13")
    scontrol(cluster, "create", "partitionname=byhand", "nodes=ALL", "maxtime=15")
    features = ("availablefeatures=compute,slow", "activefeatures=compute,slow")
    scontrol(cluster, "update", "nodename=compute-[0-1]", "weight=7", *features)

    def spec(of: tuple[str, str]) -> dict[str, Any]:
        return cluster.get(*of)["spec"]

    eventually("the Partition has it", lambda: spec(PARTITION)["maxTime"] == 9)
    config = "Default=YES MaxTime=11"
    eventually("the NodeSet too", lambda: spec(NODESET)["partition"]["config"] == config)
    eventually("and of nodes", lambda: spec(NODESET)["extraConf"] == "Feature=slow Weight=7")
    text = EXTRA_CONF.replace("MaxTime=5 #", "MaxTime=13 #")
    eventually("the Controller", lambda: spec(CONTROLLER)["extraConf"].startswith(text))
    eventually("and one line", lambda: "PartitionName=byhand " in spec(CONTROLLER)["extraConf"])
    until_agreed(cluster, PARTITION, NODESET, CONTROLLER)
    cluster.until_ready(*CONTROLLER)

    restart_slurmctld(cluster)
    until_shown(cluster, "part", MaxTime="00:09:00")
    until_shown(cluster, "compute", MaxTime="00:11:00")
    until_shown(cluster, "raw", MaxTime="00:13:00")
    until_shown(cluster, "byhand", MaxTime="00:15:00", Nodes="compute-[0-1]")
    until_nodes(cluster, 7, "compute", "slow")
    assert cluster.uids("app.kubernetes.io/name=slurmd") == workers
    until_agreed(cluster, PARTITION, NODESET, CONTROLLER)


@CALLS
def test_what_is_only_reported_is_as_declared_after_a_restart(cluster: Cluster) -> None:
    """S020."""
    choose(cluster, "Report")
    scontrol(cluster, "update", "partitionname=compute", "maxtime=21")
    scontrol(cluster, "update", "nodename=compute-0", "weight=21")
    until_told(cluster, NODESET, "MaxTime is 21, declared 11", "Weight is 21, declared 7")
    restart_slurmctld(cluster)
    until_shown(cluster, "compute", MaxTime="00:11:00")
    # And so it is after an edit of something else of it.
    scontrol(cluster, "update", "partitionname=compute", "maxtime=22")
    cluster.patch(*NODESET, {"spec": {"partition": {"config": "MaxTime=11 MaxNodes=2"}}})
    until_shown(cluster, "compute", MaxTime="00:11:00", MaxNodes="2")
    until_noted(cluster, "PartitionReverted", "MaxTime is 22, declared 11")
