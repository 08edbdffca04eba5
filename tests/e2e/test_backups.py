"""A slurmctld with a backup, on real Slurm.

Both pods are put on the only machine past the scheduler, which would keep them apart.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually, pids_in_pod
from penstock.api.slinky.labels import CONTROLLER_ACTIVE
from penstock.local.errors import LocalError

PODS = ("slurm-controller-0", "slurm-controller-1")
LONG_S = 180.0
EXTRA_CONF = manifests.EXTRA_CONF + "SlurmctldTimeout=10\n"
WRITTEN = "written-with-the-running-job"
LATE = "PartitionName=late Nodes=ALL\n"

pytestmark = pytest.mark.timeout(600)


def controller(cluster: Cluster, extra_conf: str = EXTRA_CONF) -> Json:
    machine = cluster.site.kubectl("get", "nodes", "-o", "name").strip().removeprefix("node/")
    return manifests.controller(
        extra_conf,
        ha={"enabled": True},
        persistence={"enabled": True, "existingClaim": "shared"},
        template={"spec": {"nodeName": machine}},
    )


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("pair")
    shared = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "64Mi"}}}
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "shared"},
            "spec": shared,
        },
        controller(cluster),
        manifests.restapi(),
        manifests.nodeset(1),
    )
    cluster.until_ready("controllers", manifests.NAME, LONG_S)
    cluster.until_idle("compute-0", timeout=LONG_S)
    return cluster


def works(pods: dict[str, Json]) -> list[str]:
    """Names of the pods that the Service leads to."""
    labels = {name: pod["metadata"]["labels"] for name, pod in pods.items() if name in PODS}
    return sorted(name for name, has in labels.items() if has.get(CONTROLLER_ACTIVE) == "true")


def state(cluster: Cluster, pod: str, job: int) -> str:
    """A job's state as the slurmctld of a pod says it; empty when that does not answer."""
    command = ("squeue", "-h", "-j", str(job), "-o", "%T %P")
    try:
        return cluster.kubectl("exec", pod, "-c", "slurmctld", "--", *command).strip()
    except LocalError:
        return ""


def is_written(cluster: Cluster) -> bool:
    """Whether the files in StateSaveLocation have what was set last."""
    script = f"grep -l {WRITTEN} /var/spool/slurmctld/*/job_state || true"
    said = cluster.kubectl("exec", PODS[0], "-c", "slurmctld", "--", "sh", "-c", script)
    return bool(said.strip())


def send(uid: str, number: signal.Signals) -> None:
    """Send a signal to a pod's slurmctld."""
    every = pids_in_pod(uid, "slurmctld")
    found = [one for one in every if Path(f"/proc/{one}/comm").read_text().strip() == "slurmctld"]
    assert found, every
    for one in found:
        os.kill(one, number)


def test_a_backup_takes_over_with_all_that_was_changed_and_gives_back(cluster: Cluster) -> None:
    """D7, S180, feature row 8: the Service leads to whoever works; jobs in a new partition live."""
    cluster.until("pods", lambda pods: works(pods) == [PODS[0]], "the primary works", LONG_S)
    uids = cluster.uids()
    cluster.apply(controller(cluster, EXTRA_CONF + LATE))

    def renewed(pods: dict[str, Json]) -> bool:
        return PODS[1] in pods and pods[PODS[1]]["metadata"]["uid"] != uids[PODS[1]]

    cluster.until("pods", renewed, "the standby is started with the new file", LONG_S)
    cluster.until_ready("controllers", manifests.NAME, LONG_S)
    assert cluster.get("pods", PODS[0])["metadata"]["uid"] == uids[PODS[0]]
    script = "touch /tmp/began; sleep 1000"
    job = cluster.submit(script, "--output=/dev/null", "--mem=50", "--partition=late")
    cluster.until_job(job, "RUNNING", timeout=LONG_S)
    # slurmctld shows it before slurmd has it, and one that hangs then never sends it.
    began = "test -e /tmp/began && echo yes || true"
    eventually("its worker runs it", lambda: cluster.on("compute-0", began).strip())
    # slurmctld writes its state some seconds later; a backup that reads an older one starts the
    # job again, slurmd rejects it as a duplicate, and it stays pending.
    scontrol = ("exec", PODS[0], "-c", "slurmctld", "--", "scontrol")
    cluster.kubectl(*scontrol, "update", f"JobId={job}", f"Comment={WRITTEN}")
    eventually("its state is written", lambda: is_written(cluster))

    # It hangs: its machine answers, and it does not.
    send(uids[PODS[0]], signal.SIGSTOP)
    cluster.until("pods", lambda pods: works(pods) == [PODS[1]], "the backup works", LONG_S)
    eventually(
        "it knows the job",
        lambda: state(cluster, PODS[1], job) == "RUNNING late",
        LONG_S,
        every=1,
    )
    # The kubelet would end what does not answer, a minute and a half later.
    send(uids[PODS[0]], signal.SIGKILL)
    cluster.until("pods", lambda pods: works(pods) == [PODS[0]], "the primary is back", LONG_S)

    def runs_on() -> bool:
        if (found := state(cluster, PODS[0], job)) != "RUNNING late":
            raise LookupError(found + cluster.kubectl(*scontrol, "show", "jobs,nodes"))
        return True

    eventually("the job runs on", runs_on, LONG_S, every=1)
    cluster.until_ready("controllers", manifests.NAME, LONG_S)
