"""A partition that is declared no more stays in real Slurm, drained, until its jobs have ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.changes import partition_shown as shown
from e2e_kit.changes import slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually
from penstock.local.errors import LocalError

POD = f"{manifests.NAME}-controller-0"
UNTIL = "while [ ! -e /shared/{0} ]; do sleep 0.2; done"
ALL = "PartitionName={} Nodes=ALL\n"


def controller(extra_conf: str) -> Json:
    """One whose slurmctld keeps its state."""
    found = manifests.controller(manifests.EXTRA_CONF + extra_conf)
    found["spec"].pop("persistence")
    return found


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("removed")
    worker = manifests.on_shared_disk(manifests.nodeset(1), cluster.shared)
    cluster.create(controller(ALL.format("one")), manifests.restapi(), worker)
    cluster.until_idle("compute-0")
    return cluster


def file(cluster: Cluster) -> str:
    """The slurm.conf with which slurmctld starts next."""
    return cluster.get("configmaps", "slurm-config")["data"]["slurm.conf"]


def until_held(cluster: Cluster, name: str, job: int) -> None:
    """Wait until a partition is drained for its job, and the Controller says so."""
    eventually(f"{name} is drained", lambda: shown(cluster, name).get("State") == "DRAIN", 60)
    found = cluster.until(
        "controllers",
        lambda every: (
            every[manifests.NAME]
            if str(job) in condition(every[manifests.NAME], "PartitionsDraining").get("message", "")
            and condition(every[manifests.NAME], "ConfigApplied").get("status") == "True"
            else None
        ),
        "the condition names the job",
        90,
    )
    assert condition(found, "Ready")["status"] == "True", found["status"]
    assert not condition(found, "Stalled")
    assert cluster.job(job)["JobState"] in {"RUNNING", "PENDING"}
    with pytest.raises(LocalError, match=r"(?i)not available|drain"):
        cluster.submit("true", "-p", name)


def until_gone(cluster: Cluster, name: str, *jobs: int) -> None:
    """Let the jobs of a partition end well; then it goes, from slurmctld and from the file."""
    cluster.site.node.run("touch", f"{cluster.shared}/{name}")
    for job in jobs:
        ended = cluster.until_job(job, "COMPLETED", "FAILED", "NODE_FAIL", "CANCELLED")
        assert ended["JobState"] == "COMPLETED"
    eventually(f"{name} is gone", lambda: not shown(cluster, name), 60)
    eventually("the file follows", lambda: f"PartitionName={name} " not in file(cluster), 60)
    cluster.until_ready("controllers", manifests.NAME)
    assert "defunct" not in cluster.kubectl("logs", POD, "-c", "slurmctld", "--tail=-1")


def jobs_in(cluster: Cluster, name: str) -> tuple[int, int]:
    """A job that runs in a partition until it is told to end, and one that waits behind it."""
    script = UNTIL.format(name)
    running = cluster.submit(script, "--exclusive", "-p", name, "--output=/dev/null")
    cluster.until_job(running, "RUNNING")
    return running, cluster.submit("true", "--exclusive", "-p", name, "--output=/dev/null")


def test_one_edit_renames_a_partition_and_changes_other_keys_and_the_job_runs_on(
    cluster: Cluster,
) -> None:
    """A key that a reconfigure takes over, then one for which slurmctld is restarted."""
    jobs = jobs_in(cluster, "one")
    started = slurmctld(cluster)
    cluster.apply(controller(ALL.format("two") + "MaxArraySize=1002\n"))
    eventually("two is there", lambda: bool(shown(cluster, "two")), 60)
    until_held(cluster, "one", jobs[0])
    eventually(
        "the other key is in effect",
        lambda: "= 1002" in cluster.run("sh", "-c", "scontrol show config | grep MaxArraySize"),
        60,
    )
    assert slurmctld(cluster) == started
    until_gone(cluster, "one", *jobs)

    jobs = jobs_in(cluster, "two")
    cluster.apply(
        controller(
            ALL.format("three") + "MaxArraySize=1002\nCommunicationParameters=NoCtldInAddrAny\n"
        )
    )
    eventually("slurmctld is another one", lambda: slurmctld(cluster)[0] != started[0], 90)
    eventually("three is there", lambda: bool(shown(cluster, "three")), 90)
    until_held(cluster, "two", jobs[0])
    until_gone(cluster, "two", *jobs)


def test_a_controller_that_is_made_again_without_a_partition_keeps_it_under_its_job(
    cluster: Cluster,
) -> None:
    """D40: its state, and so its jobs, outlive it."""
    jobs = jobs_in(cluster, "three")
    cluster.kubectl("delete", "controller", manifests.NAME)
    cluster.until("pods", lambda pods: POD not in pods, "slurmctld's pod is gone", 120)
    cluster.apply(controller(ALL.format("four")))
    cluster.until_ready("controllers", manifests.NAME)
    eventually("four is there", lambda: bool(shown(cluster, "four")), 60)
    until_held(cluster, "three", jobs[0])
    until_gone(cluster, "three", *jobs)


def test_the_partition_of_a_deleted_nodeset_stays_while_another_ones_worker_runs_its_job(
    cluster: Cluster,
) -> None:
    """The worker has the deleted NodeSet's feature as well, so it is in its partition."""
    extra = manifests.nodeset(1, "extra", extraConf="Features=extra,gone", partition=None)
    gone = manifests.nodeset(0, "gone", partition={"enabled": True})
    cluster.apply(manifests.on_shared_disk(extra, cluster.shared), gone)
    cluster.until_idle("compute-0", "extra-0")
    eventually("it is in gone", lambda: shown(cluster, "gone").get("Nodes") == "extra-0", 60)
    jobs = jobs_in(cluster, "gone")
    cluster.kubectl("delete", "nodeset", "gone")
    until_held(cluster, "gone", jobs[0])
    assert "NodeSet=gone Feature=gone" in file(cluster)
    cluster.apply(controller(ALL.format("four") + "MaxArraySize=1003\n"))
    until_held(cluster, "gone", jobs[0])
    until_gone(cluster, "gone", *jobs)
    assert "NodeSet=gone" not in file(cluster)
