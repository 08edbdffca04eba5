"""The operator, and its webhooks with it, are away while users go on.

`PENSTOCK_AWAY_SECONDS=600 pytest THIS_FILE` for ten minutes; others wait less.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from e2e_kit import manifests
from e2e_kit.changes import partition_shown
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually

AWAY_S = float(os.environ.get("PENSTOCK_AWAY_SECONDS") or 10)
REASON = "a fan is to be replaced"
JOB = ("--output=/dev/null", "--mem=50")
pytestmark = pytest.mark.timeout(AWAY_S + 600)


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("away")
    partition = {"enabled": True, "config": "Default=YES MaxTime=50"}
    cluster.create(
        manifests.controller(), manifests.restapi(), manifests.nodeset(2, partition=partition)
    )
    cluster.until_idle("compute-0", "compute-1")
    cluster.until_ready("nodesets", "compute")
    return cluster


def test_what_users_do_while_the_operator_is_away_is_made_up_for_and_no_job_is_lost(
    site: Site, cluster: Cluster
) -> None:
    """A scale, a drain, a changed partition and jobs; no worker that was there is restarted."""
    hooks = site.kubectl("get", "validatingwebhookconfigurations", "-o", "name")
    assert "penstock" in hooks or "slurm" in hooks
    before = cluster.uids("app.kubernetes.io/name in (slurmd,slurmctld,slurmrestd)")
    through = cluster.submit("exec sleep 3000", "-w", "compute-0", *JOB)
    cluster.until_job(through, "RUNNING")
    with site.without_operator():
        began = time.monotonic()
        cluster.kubectl("scale", "nodeset/compute", "--replicas=3")
        partition = {"spec": {"partition": {"config": "Default=YES MaxTime=40"}}}
        cluster.patch("nodeset", "compute", partition)
        cluster.run("scontrol", "update", "nodename=compute-1", "state=drain", f"reason={REASON}")
        while True:
            cluster.until_job(cluster.submit("true", "-w", "compute-0", *JOB), "COMPLETED")
            if time.monotonic() - began > AWAY_S:
                break
        assert cluster.pods().keys() == {"compute-0", "compute-1"}
    eventually("there is a third", lambda: cluster.states().get("compute-2") == {"IDLE"}, 120)
    late = cluster.submit("true", "-w", "compute-2", *JOB)
    cluster.until_job(late, "COMPLETED")
    eventually(
        "the partition is as declared",
        lambda: partition_shown(cluster, "compute").get("MaxTime") == "00:40:00",
    )
    cluster.until_ready("nodesets", "compute")
    assert "DRAIN" in cluster.states()["compute-1"]
    assert cluster.node("compute-1")["reason"] == REASON
    cluster.run("scontrol", "update", "nodename=compute-1", "state=resume")
    assert cluster.job(through)["JobState"] == "RUNNING"
    cluster.run("scancel", str(through))
    after = cluster.uids("app.kubernetes.io/name in (slurmd,slurmctld,slurmrestd)")
    assert before.items() <= after.items()
