"""The Kubernetes node of the active slurmctld is gone: the backup works, and jobs run."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator

import pytest

from e2e_kit import manifests
from e2e_kit.backups import PODS, dialled, objects, works
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
from penstock.local import inotify
from penstock.local.errors import LocalError
from support.room import room

LONG_S = 180.0
MACHINES = ("slurmctld-a", "slurmctld-b")

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def spread(site: Site, clusters: Callable[[str], Cluster]) -> Generator[Cluster]:
    """Each slurmctld on a machine that has nothing else."""
    with room(len(MACHINES) * inotify.FURTHER_NODE):
        yield from spread_over(site, clusters("spread"))


def spread_over(site: Site, cluster: Cluster) -> Generator[Cluster]:
    for machine in MACHINES:
        site.node.add(machine)
        site.kubectl("label", "node", machine, "test.penstock.dev/for=slurmctld", "--overwrite")
    place = {"nodeSelector": {"test.penstock.dev/for": "slurmctld"}}
    workers = manifests.nodeset(2)
    first = site.node.nodes()[0].name
    workers["spec"]["template"] = {"spec": {"nodeName": first}}
    rest = manifests.restapi(template={"spec": {"nodeName": first}})
    cluster.create(*objects(template={"spec": place}), rest, workers)
    cluster.until_ready("controllers", manifests.NAME, LONG_S)
    cluster.until_idle("compute-0", "compute-1", timeout=LONG_S)
    yield cluster
    for machine in MACHINES:
        site.node.start(machine)
    cluster.kubectl("delete", "nodesets,restapis,controllers", "--all", "--timeout=120s")
    cluster.until("pods", lambda pods: not pods, "no pod is left")
    for machine in MACHINES:
        site.node.delete(machine)


def submitted(cluster: Cluster, script: str = "true", options: str = "") -> int:
    """A job that a user submits on a worker; 0 while nobody takes it."""
    sbatch = f"timeout 60 sbatch --parsable --output=/dev/null {options}"
    command = f"cd /tmp && {sbatch} --wrap '{script}'"
    try:
        return int(cluster.on("compute-0", command))
    except LocalError:
        return 0


def state(cluster: Cluster, job: int) -> str:
    """A job's state as a worker is told; empty while nobody tells it."""
    try:
        shown = cluster.on("compute-0", f"timeout 60 scontrol -o show job {job}")
    except LocalError:
        return ""
    return shown.partition("JobState=")[2].partition(" ")[0]


def saved(cluster: Cluster, mark: str) -> bool:
    """Whether the state that a backup would read has a job with this comment."""
    file = "/var/spool/slurmctld/test/job_state"
    return "found" in cluster.run("sh", "-c", f"grep -qs {mark} {file} && echo found || true")


def test_the_next_job_runs_though_the_active_slurmctlds_kubernetes_node_is_gone(
    site: Site, spread: Cluster, figure: Callable[[str], None]
) -> None:
    """S180, feature row 8, D7: each slurmctld is on a Kubernetes node of its own."""
    eventually("the primary works", lambda: works(spread) == [PODS[0]], LONG_S)
    assert {spread.get("pods", one)["spec"]["nodeName"] for one in PODS} == set(MACHINES)
    machine = spread.get("pods", PODS[0])["spec"]["nodeName"]
    running = submitted(spread, "sleep 999")
    eventually("it runs", lambda: state(spread, running) == "RUNNING")
    # slurmctld saves its state every few seconds; a job that is newer ends with its machine.
    spread.on("compute-0", f"scontrol update job {running} comment=it-runs-now")
    eventually("it is saved", lambda: saved(spread, "it-runs-now"), 30)
    began = time.monotonic()
    site.node.stop(machine)
    job = eventually("a job is taken", lambda: submitted(spread), LONG_S)
    taken = time.monotonic() - began
    eventually("it ends", lambda: state(spread, job) == "COMPLETED", LONG_S)
    ran = time.monotonic() - began
    eventually("the Service leads to the backup", lambda: works(spread) == [PODS[1]], LONG_S)
    spread.until_ready("nodesets", "compute", LONG_S)
    known = time.monotonic() - began
    figure(
        f"machine of the active slurmctld gone: job taken after {taken:.0f} s, "
        f"ended after {ran:.0f} s, NodeSet Ready after {known:.0f} s"
    )
    # The operator's own questions are answered: it scales in, which takes drains and jobs.
    spread.kubectl("scale", "nodeset/compute", "--replicas=3")
    eventually("a worker joins", lambda: spread.states().get("compute-2") == {"IDLE"}, LONG_S)

    # Kubernetes sees after a while that the machine is gone; connections are refused from then on.
    eventually("it is refused", lambda: "refused" in dialled(spread, PODS[0]), LONG_S)
    backup = spread.uids()[PODS[1]]
    began = time.monotonic()
    site.node.start(machine)
    held: dict[int, float] = {}

    def given_back() -> bool:
        if taken := submitted(spread, options="--hold"):
            held[taken] = time.monotonic() - began
        renewed = spread.uids().get(PODS[1], backup) != backup
        return bool(taken) and renewed and works(spread) == [PODS[0]]

    eventually("the primary works again beside another backup", given_back, LONG_S)
    for one in sorted(held):
        assert state(spread, one) == "PENDING", (one, held)
    eventually("the job ran on", lambda: state(spread, running) == "RUNNING", 30)
    spread.until_ready("controllers", manifests.NAME, LONG_S)
    times = [0.0, *held.values()]
    gap = max(after - before for before, after in itertools.pairwise(times))
    figure(f"control given back: {len(held)} jobs taken meanwhile, at most {gap:.0f} s between two")
