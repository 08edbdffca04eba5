"""A changed configuration while something that it needs is away: slower, told, never wrong."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

import pytest

from e2e_kit import manifests
from e2e_kit.api import condition
from e2e_kit.changes import POD, SECONDS, Changes, slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually, pids_in_pod


@pytest.fixture(scope="module")
def changes(clusters: Callable[[str], Cluster]) -> Changes:
    cluster = clusters("waits")
    found = Changes(cluster, 1)
    cluster.create(found.declared.controller(), manifests.restapi(), found.declared.nodeset())
    cluster.until_idle("compute-0", "compute-1")
    cluster.until_ready("controllers", manifests.NAME, SECONDS)
    found.settled()
    return found


def applied(changes: Changes) -> str:
    """What the condition says of a configuration that is on its way; empty when it is there."""
    obj = changes.cluster.get("controllers", manifests.NAME)
    found = condition(obj, "ConfigApplied")
    fresh = found.get("observedGeneration") == obj["metadata"]["generation"]
    return found["message"] if fresh and found["status"] == "Unknown" else ""


def test_a_kubelet_that_hangs_is_waited_for_and_reported(changes: Changes) -> None:
    cluster = changes.cluster
    kubelet = cluster.site.node.processes()["kubelet"]
    before = slurmctld(cluster)
    kubelet.signal(signal.SIGSTOP)
    try:
        changes.declared.keys["SchedulerTimeSlice"] = "51"
        cluster.apply(changes.declared.controller())
        told = eventually("the condition tells", lambda: applied(changes), SECONDS)
        assert "waits for its trial start" in told
        assert "SchedulerTimeSlice=51" not in changes.file()
    finally:
        kubelet.signal(signal.SIGCONT)
    changes.settled()
    assert slurmctld(cluster) == before


def test_a_reconfigure_container_that_is_killed_goes_on_where_it_was(changes: Changes) -> None:
    """D39: files change while it is started again."""
    cluster = changes.cluster
    before = slurmctld(cluster)
    uid = before[0]
    for number in range(2):
        changes.declared.keys["SchedulerTimeSlice"] = str(20 + number)
        cluster.apply(changes.declared.controller())
        for pid in pids_in_pod(uid, "RECONFIGURE_TICK"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        changes.settled()
        eventually("it is told", lambda: not applied(changes), SECONDS)
    assert slurmctld(cluster) == before


def test_without_slurmrestd_partitions_go_by_the_file(changes: Changes) -> None:
    cluster = changes.cluster
    before = slurmctld(cluster)
    cluster.kubectl("delete", "restapi", manifests.NAME)
    cluster.until("pods", lambda pods: not any("restapi" in name for name in pods), "it is gone")
    changes.declared.compute = "33"
    cluster.apply(changes.declared.nodeset())
    changes.settled()
    assert "MaxTime=33" in changes.file()
    assert slurmctld(cluster) == before
    assert POD in cluster.pods("app.kubernetes.io/name=slurmctld")
