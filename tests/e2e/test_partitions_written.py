"""Configuration and partitions as an administrator writes them, on real Slurm.

One cluster for S021, S022, S025 to S027, S029, S146 and S149: eight workers, one with a GPU's
name, partition lines in `extraConf`, and a login.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition, ready
from e2e_kit.changes import partition_shown as shown
from e2e_kit.changes import slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually
from penstock.api.cluster import marks
from penstock.local.errors import LocalError

EXTRA_CONF = (
    manifests.EXTRA_CONF
    + """\
MinJobAge=333
# All of it, for short tests:
PartitionName=all Nodes=ALL Default=NO

# Urgent work, on both kinds of node.
PartitionName=highprio Nodes=compute,gpu MaxTime=1-00:00:00 Priority=100
"""
)
COMPUTE, GPU = tuple(f"compute-{number}" for number in range(8)), ("gpu-0",)
CONFIG = "Default=YES MaxTime=7-00:00:00 State=UP"
CONTROLLER = f"{manifests.NAME}-controller"
CONF = f"{manifests.NAME}-config"
POD = f"{CONTROLLER}-0"
LOGIN = ("exec", "deploy/login", "--")


def partition(name: str, **spec: Any) -> Json:
    """A Partition of the cluster."""
    ref = {"controllerRef": {"name": manifests.NAME}}
    meta = {"name": name}
    kind = {"apiVersion": "penstock.dev/v1alpha1", "kind": "Partition"}
    return {**kind, "metadata": meta, "spec": {**ref, **spec}}


def nodeset(replicas: int, name: str) -> Json:
    """A NodeSet without a partition of its own."""
    return manifests.nodeset(replicas, name, partition={"enabled": False})


OBJECTS = (
    manifests.controller(EXTRA_CONF, persistence={"enabled": True}),
    manifests.restapi(),
    manifests.nodeset(len(COMPUTE), partition={"enabled": True, "config": CONFIG}),
    nodeset(len(GPU), "gpu"),
    manifests.loginset(),
)


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("written")
    cluster.create(*OBJECTS)
    cluster.until_idle(*COMPUTE, *GPU, timeout=180)
    for resource, name in (
        ("controllers", manifests.NAME),
        ("nodesets", "compute"),
        ("nodesets", "gpu"),
        ("loginsets", "login"),
    ):
        cluster.until_ready(resource, name)
    return cluster


def file(cluster: Cluster) -> str:
    """The slurm.conf with which slurmctld starts next."""
    return data(cluster, CONF)["slurm.conf"]


def data(cluster: Cluster, name: str) -> dict[str, str]:
    """The files of a ConfigMap."""
    return cluster.get("configmaps", name)["data"]


def until_applied(cluster: Cluster, words: str) -> None:
    """Wait until slurmctld's file has these words, and slurmctld what the file says."""

    def applied(found: dict[str, Json]) -> bool:
        status = found[manifests.NAME]["status"]
        one = condition(found[manifests.NAME], "ConfigApplied")
        same = status["effectiveConfigHash"] == status["configHash"]
        return one.get("status") == "True" and same and words in file(cluster)

    cluster.until("controllers", applied, f"slurmctld has {words}")


def until_nodes(cluster: Cluster, name: str, nodes: str) -> None:
    """Wait until a partition has exactly these nodes."""
    eventually(f"{name} has {nodes}", lambda: shown(cluster, name).get("Nodes") == nodes, 30)


def restart_slurmctld(cluster: Cluster) -> None:
    """End slurmctld's process, which saves its state then, and wait for the next one.

    One that is killed forgets what it has not saved yet, as the start of a job a moment before.
    """
    pod, starts = slurmctld(cluster)
    with contextlib.suppress(LocalError):
        # The container may end before it answers.
        cluster.run("pkill", "-TERM", "-o", "-x", "slurmctld")
    eventually("slurmctld was started again", lambda: slurmctld(cluster) == (pod, starts + 1), 90)
    eventually("slurmctld answers", lambda: "UP" in cluster.run("scontrol", "ping"), 60)


def test_a_nodeset_gives_its_two_lines_and_slurmctld_shows_the_partition(cluster: Cluster) -> None:
    """S021."""
    own = [line for line in file(cluster).splitlines() if "=compute " in line]
    assert own == [
        "NodeSet=compute Feature=compute",
        f"PartitionName=compute Nodes=compute {CONFIG}",
    ]
    found = shown(cluster, "compute")
    wanted = {"Default": "YES", "MaxTime": "7-00:00:00", "State": "UP", "TotalNodes": "8"}
    assert wanted.items() <= found.items()
    assert ",node=8," in found["TRES"]


def test_the_same_manifests_again_change_nothing(cluster: Cluster) -> None:
    """S027."""
    cluster.until_idle(*COMPUTE, *GPU, timeout=120)
    site = cluster.site

    def quiet() -> bool:
        since = datetime.now(UTC) - timedelta(seconds=QUIET_S)
        return all(one.at < since for one in site.operator_writes(cluster.namespace))

    eventually("the operator writes nothing more", quiet, 60, every=1)
    since, before = booted(cluster), len(site.operator_writes(cluster.namespace))
    cluster.apply(*OBJECTS)
    cluster.poke(3)
    after = site.operator_writes(cluster.namespace)[before:]
    assert [f"{one.verb} {one.resource} {one.name} {one.at}" for one in after] == []
    assert booted(cluster) == since


def test_raw_lines_are_appended_and_span_what_they_name_also_what_comes_later(
    cluster: Cluster,
) -> None:
    """S022: `Priority=`, the older spelling, is what Slurm takes it for."""
    assert file(cluster).endswith(EXTRA_CONF)
    assert shown(cluster, "all")["TotalNodes"] == "9"
    found = shown(cluster, "highprio")
    assert (found["TotalNodes"], found["MaxTime"]) == ("9", "1-00:00:00")
    assert {found["PriorityJobFactor"], found["PriorityTier"]} == {"100"}
    started = slurmctld(cluster)
    cluster.apply(nodeset(1, "late"))
    cluster.until_idle(*COMPUTE, *GPU, "late-0", timeout=120)
    eventually("all has it", lambda: shown(cluster, "all")["TotalNodes"] == "10", 30)
    assert shown(cluster, "highprio")["TotalNodes"] == "9"
    job = cluster.submit("true", "-p", "all", "-w", "late-0", "--output=/dev/null")
    assert cluster.until_job(job, "COMPLETED", "FAILED")["NodeList"] == "late-0"
    assert slurmctld(cluster) == started
    cluster.kubectl("delete", "nodeset", "late", "--timeout=90s")
    eventually("all is without it", lambda: shown(cluster, "all")["TotalNodes"] == "9", 30)


def test_the_login_and_both_names_of_the_configuration_agree(cluster: Cluster) -> None:
    """S029."""
    said = cluster.kubectl(*LOGIN, "sh", "-c", "scontrol show config | grep -i minjobage")
    assert said.split() == ["MinJobAge", "=", "333", "sec"]
    older = f"{manifests.NAME}-config-{manifests.NAME}"
    assert "MinJobAge=333" in cluster.kubectl("get", "configmap", older, "-o", "yaml")
    eventually("both have the same content", lambda: data(cluster, older) == data(cluster, CONF))
    for name in (CONTROLLER, f"{manifests.NAME}-controller-{manifests.NAME}"):
        answered = cluster.kubectl(*LOGIN, "sh", "-c", f"nc -zv -w 5 {name} 6817 2>&1")
        assert "succeeded" in answered or "open" in answered


def test_partitions_are_made_changed_and_deleted_by_scontrol(cluster: Cluster) -> None:
    """S025: the operator looks on."""
    started = slurmctld(cluster)
    states = ("sinfo", "-h", "-p", "test", "-o", "%a %D")
    cluster.run("scontrol", "create", "PartitionName=test", "Nodes=ALL")
    assert set(cluster.run(*states).splitlines()) == {"up 9"}
    cluster.run("scontrol", "update", "partitionname=test", "state=down")
    assert set(cluster.run(*states).splitlines()) == {"down 9"}

    def told(found: dict[str, Json]) -> bool:
        return "test was made in Slurm" in condition(found[manifests.NAME], "Drifted").get(
            "message", ""
        )

    cluster.until("controllers", told, "the operator has seen it")
    cluster.poke(2)
    assert shown(cluster, "test")["State"] == "DOWN"
    cluster.run("scontrol", "delete", "partitionname=test")
    assert not shown(cluster, "test")
    assert "test" not in cluster.run("sinfo", "-h", "-o", "%P").split()
    assert slurmctld(cluster) == started


def test_nodes_that_scontrol_adds_and_removes_are_as_declared_after_a_restart(
    cluster: Cluster,
) -> None:
    """S026."""
    cluster.apply(partition("some", nodes=["compute-[0-3]"]))
    until_nodes(cluster, "some", "compute-[0-3]")
    until_applied(cluster, "PartitionName=some ")
    update = ("scontrol", "update", "partitionname=some")
    cluster.run(*update, "nodes=+compute-[5-7]")
    assert shown(cluster, "some")["Nodes"] == "compute-[0-3,5-7]"
    cluster.run(*update, "nodes=-compute-[1-2]")
    assert shown(cluster, "some")["Nodes"] == "compute-[0,3,5-7]"
    told = "Nodes is compute-[0,3,5-7], declared compute-[0-3]"
    cluster.until(
        "partitions",
        lambda found: told in condition(found["some"], "Drifted").get("message", ""),
        "the operator has seen it",
    )
    assert shown(cluster, "some")["Nodes"] == "compute-[0,3,5-7]"
    restart_slurmctld(cluster)
    until_nodes(cluster, "some", "compute-[0-3]")
    cluster.until_idle(*COMPUTE, *GPU)
    cluster.kubectl("delete", "partition", "some")
    eventually("it is gone", lambda: not shown(cluster, "some"), 60)


def test_entries_of_two_users_join_and_leave_at_once_and_nothing_else_does(
    cluster: Cluster, figure: Callable[[str], None]
) -> None:
    """S146."""
    cluster.apply(partition("list", nodes=["compute-[0-4]"]))
    until_nodes(cluster, "list", "compute-[0-4]")
    cluster.until_ready("partitions", "list")
    job = cluster.submit("sleep 600", "-p", "list", "-w", "compute-0", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    others = ("compute", "all", "highprio")
    before = {name: shown(cluster, name) for name in others}
    pods, started = cluster.uids(), slurmctld(cluster)

    def add(entry: str) -> None:
        patch = json.dumps([{"op": "add", "path": "/spec/nodes/-", "value": entry}])
        cluster.kubectl("patch", "partition", "list", "--type=json", "-p", patch)

    users = [threading.Thread(target=add, args=(e,)) for e in ("+compute-[5-6]", "-compute-[1-2]")]
    for user in users:
        user.start()
    for user in users:
        user.join()
    patched = time.monotonic()
    until_nodes(cluster, "list", "compute-[0,3-6]")
    figure(
        f"entries of a Partition by two users: in Slurm {time.monotonic() - patched:.1f} s after "
        "both patches (limit 1 s)"
    )
    assert set(cluster.get("partitions", "list")["spec"]["nodes"]) == {
        "compute-[0-4]",
        "+compute-[5-6]",
        "-compute-[1-2]",
    }
    assert {name: shown(cluster, name) for name in others} == before
    assert cluster.job(job)["JobState"] == "RUNNING"
    assert (cluster.uids(), slurmctld(cluster)) == (pods, started)
    cluster.until_ready("partitions", "list")
    restart_slurmctld(cluster)
    until_nodes(cluster, "list", "compute-[0,3-6]")
    assert cluster.job(job)["JobState"] == "RUNNING"
    cluster.run("scancel", str(job))
    cluster.until_idle(*COMPUTE, *GPU)


def test_partitions_need_no_nodeset_and_outlive_the_one_they_name(cluster: Cluster) -> None:
    """S149: over two NodeSets, over labelled workers, and over a NodeSet that comes and goes."""
    team = {"podLabels": {"matchLabels": {"team": "a"}}}
    cluster.apply(
        partition("both", nodeSets=["compute", "gpu"]),
        partition("team", selector=team),
        partition("early", nodeSets=["early", "gpu"]),
    )
    until_nodes(cluster, "both", "compute-[0-7],gpu-0")
    for name in ("compute-1", "gpu-0"):
        cluster.kubectl("label", "pod", name, "team=a")
    until_nodes(cluster, "team", "compute-1,gpu-0")
    until_nodes(cluster, "early", "gpu-0")
    until_missing(cluster)

    cluster.apply(nodeset(1, "early"))
    cluster.until_idle(*COMPUTE, *GPU, "early-0", timeout=120)
    until_nodes(cluster, "early", "early-0,gpu-0")
    cluster.until_ready("partitions", "early")
    for name, node in (("both", "gpu-0"), ("team", "compute-1"), ("early", "early-0")):
        job = cluster.submit("true", "-p", name, "-w", node, "--output=/dev/null")
        done = cluster.until_job(job, "COMPLETED", "FAILED")
        assert (done["JobState"], done["NodeList"]) == ("COMPLETED", node)

    before = {name: shown(cluster, name) for name in ("both", "team", "compute")}
    cluster.kubectl("delete", "nodeset", "early", "--timeout=90s")
    until_missing(cluster)
    until_nodes(cluster, "early", "gpu-0")
    assert {name: shown(cluster, name) for name in before} == before
    for name in ("both", "team"):
        assert ready(cluster.get("partitions", name))
    cluster.kubectl("delete", "partition", "both", "team", "early")
    eventually("they are gone", lambda: not any(shown(cluster, n) for n in PARTITIONS), 60)
    cluster.until_idle(*COMPUTE, *GPU)


PARTITIONS = ("both", "team", "early")


def until_missing(cluster: Cluster) -> None:
    """Wait until the Partition names the NodeSet that is not there."""

    def missing(found: dict[str, Json]) -> bool:
        one = condition(found["early"], "Ready")
        return one.get("reason") == "NodeSetNotFound" and "early" in one["message"]

    cluster.until("partitions", missing, "the NodeSet that is missing is named")


EDITS: dict[tuple[str, str], Json] = {
    ("configmaps", CONF): {"data": {"slurm.conf": "ClusterName=mine\n"}},
    ("services", CONTROLLER): {"spec": {"selector": {"mine": "yes"}}},
    ("statefulsets", CONTROLLER): {"spec": {"replicas": 0}},
}
"""What is edited by hand, and how."""
KINDS = {"configmaps": "ConfigMap", "services": "Service", "statefulsets": "StatefulSet"}


def test_what_is_edited_or_deleted_by_hand_comes_back_under_a_job(
    cluster: Cluster, figure: Callable[[str], None]
) -> None:
    """S027: each time with one event; the same manifests again write nothing."""
    job = cluster.submit("sleep 600", "-w", "compute-0", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    workers = cluster.uids(WORKERS)
    noted = notes(cluster)
    took: list[float] = []

    def back(resource: str, name: str, wanted: Json, uid: str = "") -> None:
        began = time.monotonic()
        cluster.until(
            resource,
            lambda found: (
                name in found
                and found[name]["metadata"]["uid"] != uid
                and _declared(found[name]) == wanted
            ),
            f"{resource} {name} is as declared",
        )
        took.append(time.monotonic() - began)

    def one_each(*words: str) -> bool:
        found = {one: _more(cluster, noted, one) for one in words}
        if set(found.values()) != {1}:
            raise LookupError(f"{found} of {notes(cluster)}")
        return True

    for (resource, name), edit in EDITS.items():
        before = cluster.get(resource, name)
        cluster.patch(resource, name, edit)
        back(resource, name, _declared(before))
        cluster.kubectl("delete", resource, name)
        back(resource, name, _declared(before), before["metadata"]["uid"])
    cluster.until_ready("controllers", manifests.NAME)
    eventually("slurmctld answers", lambda: "UP" in cluster.run("scontrol", "ping"), 90)
    assert max(took) < LIMIT_S, took
    figure(f"objects edited or deleted by hand: back after {max(took):.1f} s at most (limit 10 s)")
    assert cluster.job(job)["JobState"] == "RUNNING"
    assert cluster.uids(WORKERS) == workers
    for (resource, name), words in ((one, KINDS[one[0]]) for one in EDITS):
        made, edited = f"Created {words} {name}", f"Updated {words} {name}: "
        eventually(f"one event each for {resource}", lambda m=made, e=edited: one_each(m, e))
    cluster.run("scancel", str(job))


LIMIT_S = 10.0
WORKERS = "app.kubernetes.io/name=slurmd"


QUIET_S = 8.0
"""The operator asks Slurm every 5 s at least: what it had to write then is written."""


def booted(cluster: Cluster) -> str:
    """Since when slurmctld runs; a reconfigure is another process in the same pod."""
    lines = cluster.run("scontrol", "show", "config").splitlines()
    return next(line for line in lines if line.startswith("BOOT_TIME"))


def _declared(obj: Json) -> Json:
    """Of an object, what the operator declares."""
    if "data" in obj:
        return obj["data"]
    spec = obj["spec"]
    return {key: spec[key] for key in ("replicas", "selector", "ports", "template") if key in spec}


def notes(cluster: Cluster) -> dict[str, int]:
    """How often each event of the namespace happened, by its note."""
    found: dict[str, int] = {}
    for one in cluster.site.api.list("events", cluster.namespace):
        series: Json = one.get("series") or {}
        count: int = series.get("count", 1)
        found[one.get("note", "")] = found.get(one.get("note", ""), 0) + count
    return found


def _more(cluster: Cluster, before: dict[str, int], words: str) -> int:
    """How many more events begin with these words than before.

    Those about changes of the configuration, which have its hash as well, are of earlier tests: an
    event that happens again is counted up to 30 s later.
    """
    now = {note: n for note, n in notes(cluster).items() if marks.CONTENT_HASH not in note}
    return sum(n - before.get(note, 0) for note, n in now.items() if note.startswith(words))
