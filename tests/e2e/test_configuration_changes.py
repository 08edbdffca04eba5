"""Many changes of the configuration, good and bad, on real Slurm while jobs run.

    PENSTOCK_CHANGES=50 PENSTOCK_KILLS=10 PENSTOCK_SEED=1 pytest -s THIS_FILE

CI makes fewer. The seed is told when one fails.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

import pytest

from e2e_kit import manifests
from e2e_kit.chance import seed
from e2e_kit.changes import POD, SECONDS, Changes, slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually

CHANGES = int(os.environ.get("PENSTOCK_CHANGES", "16"))
KILLS = int(os.environ.get("PENSTOCK_KILLS", "4"))


@pytest.fixture
def changes(clusters: Callable[[str], Cluster]) -> Changes:
    cluster = clusters("changes")
    found = Changes(cluster, seed())
    cluster.create(found.declared.controller(), manifests.restapi(), found.declared.nodeset())
    cluster.until_idle("compute-0", "compute-1")
    cluster.until_ready("controllers", manifests.NAME, SECONDS)
    found.settled()
    return found


@pytest.mark.timeout(CHANGES * 30 + 300)
def test_after_many_changes_the_last_good_declaration_is_in_effect(
    changes: Changes, figure: Callable[[str], None]
) -> None:
    cluster = changes.cluster
    chance = random.Random(changes.seed + 1)
    jobs = [cluster.submit("exec sleep 3000", "-w", f"compute-{n}") for n in range(2)]
    for job in jobs:
        cluster.until_job(job, "RUNNING")
    started, workers = slurmctld(cluster), cluster.uids("app.kubernetes.io/name=slurmd")
    order = [number % 3 == 0 for number in range(CHANGES)]
    chance.shuffle(order)
    made: list[str] = []
    times: list[float] = []
    for bad in order:
        if bad:
            made.append(f"bad {changes.bad()}")
        else:
            made.append(changes.good())
            began = time.monotonic()
            if chance.random() < 0.8:
                changes.settled()
                times.append(time.monotonic() - began)
        print(made[-1], f"{times[-1]:.1f} s" if times and not bad else "")
    changes.settled()
    assert [cluster.job(job)["JobState"] for job in jobs] == ["RUNNING", "RUNNING"]
    assert slurmctld(cluster) == started
    assert cluster.uids("app.kubernetes.io/name=slurmd") == workers
    assert all(not state & {"DRAIN", "DOWN"} for state in cluster.states().values())

    # It starts on the same, whatever is refused at the moment.
    cluster.kill("slurmctld")
    eventually("slurmctld was started again", lambda: slurmctld(cluster)[1] == started[1] + 1)
    changes.settled()
    assert "nosuch" not in changes.file()
    assert "BogusKey" not in changes.file()
    times.sort()
    median, last = times[len(times) // 2], times[-1]
    figure(
        f"{CHANGES} changes of a configuration (seed {changes.seed}): good ones in effect after "
        f"{median:.1f} s (median), {last:.1f} s (longest)"
    )


@pytest.mark.timeout(KILLS * 90 + 300)
def test_slurmctld_killed_amid_changes_comes_back_on_the_last_good_one(changes: Changes) -> None:
    cluster = changes.cluster
    chance = random.Random(changes.seed + 2)
    job = cluster.submit("exec sleep 3000")
    cluster.until_job(job, "RUNNING")
    for number in range(KILLS):
        if number % 2:
            bad = True
            changes.declared.bad = "BogusKey=1"
            cluster.apply(changes.declared.controller())
        else:
            bad = False
            changes.declared.bad = ""
            changes.declared.keys["SchedulerTimeSlice"] = str(10 + number)
            changes.declared.raw = str(1 + number)
            cluster.apply(changes.declared.controller())
        # Not a wait for something: this is how far the change gets.
        time.sleep(chance.uniform(0.0, 2.5))
        uid = slurmctld(cluster)[0]
        # A pod of its own each time: the kubelet waits longer before each start of a container.
        cluster.kubectl("delete", "pod", POD, "--grace-period=0", "--force")
        eventually("slurmctld is another one", lambda u=uid: _other(cluster, u), SECONDS)
        changes.settled()
        assert "BogusKey" not in changes.file(), f"kill {number}"
        if bad:
            obj = cluster.get("controllers", manifests.NAME)
            assert obj["status"]["configHash"] != obj["status"]["effectiveConfigHash"]
        assert cluster.job(job)["JobState"] == "RUNNING", f"kill {number}"


def _other(cluster: Cluster, uid: str) -> bool:
    """Whether another slurmctld runs: until then the kubelet may answer from the killed one."""
    pod = cluster.pods("app.kubernetes.io/name=slurmctld").get(POD)
    if pod is None or pod["metadata"]["uid"] == uid:
        return False
    every = pod["status"].get("containerStatuses", ())
    return any(one["name"] == "slurmctld" and "running" in one["state"] for one in every)
