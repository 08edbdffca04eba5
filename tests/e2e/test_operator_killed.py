"""The operator is killed while it scales: nothing is made twice, and no job notices."""

from __future__ import annotations

import os
import random
import select
import signal
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, restarts
from e2e_kit.chance import seed
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually, pid_in_pod
from e2e_kit.undying import COMMAND, undying_operator
from penstock.api.slinky.labels import POD_INDEX

MOST = 6
KILLS = 5
"""For each direction."""
LONGEST_LIFE = 2.0
"""Seconds until an operator is killed; it has started and acts after about one."""


@dataclass
class Seen:
    """What a watch of the worker pods saw, and what of it must not have been."""

    uids: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    most: int = 0
    wrong: list[str] = field(default_factory=list[str])

    def look(self, pods: dict[str, Json]) -> bool:
        """Take note of one state; true once somebody has marked the end on compute-0."""
        indexes = [p["metadata"]["labels"][POD_INDEX] for p in pods.values()]
        self.most = max(self.most, len(pods))
        if len(set(indexes)) != len(indexes):
            self.wrong.append(f"two pods for one ordinal: {sorted(pods)}")
        for name, pod in pods.items():
            self.uids.setdefault(name, set()).add(pod["metadata"]["uid"])
        first = pods.get("compute-0", {}).get("metadata", {})
        if not first or "deletionTimestamp" in first:
            self.wrong.append("compute-0, where the job runs, was deleted")
        return "over" in first.get("annotations", {})


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("killed")
    workers = manifests.on_shared_disk(manifests.nodeset(1), cluster.shared)
    cluster.create(manifests.controller(), manifests.restapi(), workers)
    cluster.until_ready("nodesets", "compute")
    cluster.until_idle("compute-0")
    return cluster


@pytest.fixture(scope="module")
def operator_uid(site: Site, cluster: Cluster) -> Generator[str]:
    """Uid of the operator's pod, in which a killed operator is started again at once."""
    with undying_operator(site) as uid:
        yield uid


def test_an_operator_killed_ten_times_while_scaling_makes_no_pod_twice_and_ends_no_job(
    cluster: Cluster, operator_uid: str
) -> None:
    moments = random.Random(seed())
    whole = cluster.submit(_until("over"), "--nodelist=compute-0", "--output=/shared/whole")
    cluster.until_job(whole, "RUNNING")
    first = cluster.get("pods", "compute-0")["metadata"]["uid"]
    seen = Seen()
    with ThreadPoolExecutor(2) as pool:
        watch = pool.submit(_watch, cluster, seen)
        try:
            # Not waited for: the first kill may come before the operator knows of it.
            scaled = pool.submit(_scale, cluster, MOST)
            for _ in range(KILLS):
                _kill(cluster, operator_uid, moments)
            scaled.result()
            _until_settled(cluster, MOST)
            late = cluster.submit(_until("late"), "--nodelist=compute-4", "--output=/shared/late")
            cluster.until_job(late, "RUNNING")
            scaled = pool.submit(_scale, cluster, 1)
            for _ in range(KILLS - 1):
                _kill(cluster, operator_uid, moments)
            scaled.result()
            _until_workers(cluster, {0, 4})
            assert cluster.job(late)["JobState"] == "RUNNING"
            cluster.on("compute-0", "touch /shared/made-late")
            _kill(cluster, operator_uid, moments)
            _until_settled(cluster, 1)
        finally:
            cluster.kubectl("annotate", "pod", "compute-0", "over=yes")
        watch.result()
    assert seen.wrong == []
    assert seen.most == MOST
    assert {name: len(uids) for name, uids in seen.uids.items()} == {
        f"compute-{number}": 1 for number in range(MOST)
    }
    pod = cluster.get("pods", "compute-0")
    assert (pod["metadata"]["uid"], restarts(pod)) == (first, 0)
    assert cluster.job(whole)["JobState"] == "RUNNING"
    cluster.on("compute-0", "touch /shared/made-over")
    for job, name in ((late, "late"), (whole, "whole")):
        done = cluster.until_job(job, "COMPLETED", "FAILED", "NODE_FAIL", "CANCELLED")
        assert (done["JobState"], done["ExitCode"], done["Restarts"]) == ("COMPLETED", "0:0", "0")
        assert cluster.output(name) == "the end\n"


def _until(name: str) -> str:
    return f"until [ -e /shared/made-{name} ]; do sleep 1; done; echo the end"


def _watch(cluster: Cluster, seen: Seen) -> None:
    cluster.site.api.until(
        "pods",
        cluster.namespace,
        seen.look,
        what="the mark on compute-0",
        timeout=240,
        selector="app.kubernetes.io/name=slurmd",
    )


def _scale(cluster: Cluster, replicas: int) -> None:
    cluster.kubectl("scale", "nodeset/compute", f"--replicas={replicas}")


def _kill(cluster: Cluster, operator_uid: str, moments: random.Random) -> None:
    pid = eventually("an operator runs", lambda: _pid(operator_uid), every=0.02)
    life = moments.uniform(0, LONGEST_LIFE)
    process = os.pidfd_open(pid)
    try:
        # Not a wait for something: the moment is the test.
        time.sleep(life)
        signal.pidfd_send_signal(process, signal.SIGKILL)
        assert select.select([process], [], [], 10)[0], "a killed operator must end"
    finally:
        os.close(process)
    pods = [name for name, pod in cluster.pods().items() if not _going(pod)]
    print(f"killed after {life:.2f} s, pods {sorted(pods)}")


def _pid(operator_uid: str) -> int | None:
    try:
        return pid_in_pod(operator_uid, COMMAND)
    except LookupError:
        return None


def _going(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _until_settled(cluster: Cluster, replicas: int) -> None:
    started = time.monotonic()
    cluster.until_ready("nodesets", "compute", 180)
    wanted = set(range(replicas))
    _until_workers(cluster, wanted)
    names = {f"compute-{number}" for number in wanted}
    eventually("Slurm has these nodes only", lambda: _usable(cluster) == names, 90)
    print(f"{replicas} workers {time.monotonic() - started:.1f} s later")


def _until_workers(cluster: Cluster, ordinals: set[int]) -> None:
    names = {f"compute-{number}" for number in ordinals}

    def only_these(pods: dict[str, Json]) -> bool:
        return {name for name in pods if name.startswith("compute-")} == names

    cluster.until("pods", only_these, f"the workers are {ordinals}")


def _usable(cluster: Cluster) -> set[str]:
    """Nodes, marked where they take no jobs."""
    states = cluster.states()
    good = ({"IDLE"}, {"MIXED"}, {"ALLOCATED"})
    return {name if state in good else f"{name} {sorted(state)}" for name, state in states.items()}
