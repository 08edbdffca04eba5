"""A day of a SlurmCluster, in minutes: jobs flow while things break, are drained and are killed.

Not part of `make test`, for its length. Run it by `make day MINUTES=10`.

One worker fails a check and is repaired, a user drains another one, the Kubernetes node of a third
one has a provider's maintenance, the operator is killed twice and slurmctld once. In the end each
job has run to its end, the repaired worker is back and the user's drain is still there.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import yaml

from e2e_kit import mariadb
from e2e_kit.exporter import Exporter
from e2e_kit.further_node import further_node
from e2e_kit.images import give_all
from e2e_kit.reboot import RebootedNode
from e2e_kit.release import RELEASE
from e2e_kit.site import Site, eventually, pid_in_pod
from e2e_kit.slurmcluster import SlurmClusterSite
from e2e_kit.slurmcluster_records import ClusterRecords
from penstock.local.errors import LocalError
from penstock.local.images import build_jail, build_slurm

MINUTES = float(os.environ.get("PENSTOCK_DAY_MINUTES", "10"))
SECONDS = MINUTES * 60
CALM_S = 300.0
SOON = "SlurmdTimeout=30\n"
"""A job that slurmctld had started when it was killed, and whose slurmd knows nothing of it, counts
as running until the node registers again: after some twenty pings, a third of this time apart. Then
it is requeued."""
EXAMPLE = Path(__file__).parents[2] / "examples/slurmcluster.yaml"
SCRIPTS = "/opt/slurm_scripts"
FAULT = "/run/fault"
CHECK = {
    "name": "bad_link",
    "command": f'[ ! -e {FAULT} ] || {{ echo "link 3 is down" >&3; false; }}',
    "contexts": ["hc_program"],
    "on_fail": "drain",
    "on_ok": "undrain",
    "reason_base": "[hardware_problem] $name",
}
CHECKED = {
    "healthCheckInterval": 3,
    "healthCheckProgram": f"{SCRIPTS}/hc_program.sh",
    "healthCheckNodeState": [{"state": "ANY"}],
}
BROKEN = "[hardware_problem] bad_link: link 3 is down [hc_program]"
USERS = "new cable"
SPARE = "spare"
"""The Kubernetes node with the last worker, which has a maintenance."""
WORKERS = tuple(f"worker-{ordinal}" for ordinal in range(4))
BAD, DRAINED, MOVED = WORKERS[0], WORKERS[1], WORKERS[3]
JOB = """
f=/srv/day/{name}
say() {{ echo $1 $(hostname) >> $f; }}
say begin
sleep {seconds}
say end
"""

pytestmark = pytest.mark.timeout(SECONDS + 1800)


class Jobs:
    """Jobs of 1 to 20 s, one after the other, from a login."""

    def __init__(self, records: ClusterRecords) -> None:
        self.taken: dict[str, str] = {}
        """Names by the ids that sbatch printed."""
        self._records = records
        self._stop = threading.Event()
        self._count = 0

    def run(self) -> None:
        """Submit until `stop`."""
        while not self._stop.wait(2):
            self._count += 1
            name = f"job-{self._count}"
            script = JOB.format(name=name, seconds=1 + self._count * 7 % 20)
            with contextlib.suppress(LocalError):
                # Slurmctld or the API server was away: a user would submit it again.
                self.taken[self._submit(name, script)] = name

    def stop(self) -> None:
        """Submit no more."""
        self._stop.set()

    def _submit(self, name: str, script: str) -> str:
        options = f"--parsable --requeue -J {name} -o /dev/null --mem=50"
        return self._records.cluster.session(f"sbatch {options} <<'END'\n#!/bin/sh{script}END")


@pytest.fixture(scope="module")
def spare(site: Site) -> Generator[str]:
    """Another Kubernetes node, with a kubelet of its own."""
    with further_node(site, SPARE) as name:
        yield name


@pytest.fixture(scope="module")
def records(site: Site, spare: str) -> Generator[ClusterRecords]:
    """A SlurmCluster with accounting, whose last worker is on the spare node."""
    mariadb.load(site.node)
    images = give_all(site.node, [*build_jail(RELEASE).values(), build_slurm(RELEASE)["slurmdbd"]])
    documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
    spec = documents[-1]["spec"]
    spec["healthCheckConfig"] = CHECKED
    spec["customSlurmConfig"] = spec.get("customSlurmConfig", "") + SOON
    spec["slurmNodes"]["worker"]["size"] = 3
    text = yaml.safe_dump_all(documents)
    made = SlurmClusterSite(
        site, f"day-{secrets.token_hex(2)}", text, images, workers=set(WORKERS[:3])
    )
    first = site.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split()
    try:
        site.kubectl("cordon", spare)
        made.up()
        found = ClusterRecords(made, "login-0", images)
        image = {"image": mariadb.IMAGE, "imagePullPolicy": "Never"}
        found.enable(embeddedDB={"enabled": True, **image, "storage": {"size": "1Gi"}})
        found.registered()
        site.kubectl("uncordon", spare)
        site.kubectl("cordon", *(one for one in first if one != spare))
        made.patch({"slurmNodes": {"worker": {"size": 4}}})
        placed = ("get", "pod", MOVED, "-o", "jsonpath={.spec.nodeName}", "--ignore-not-found")
        eventually("the last worker is placed", lambda: made.kubectl(*placed) == spare, CALM_S)
        # While its Kubernetes node is cordoned a worker is drained.
        site.kubectl("uncordon", *(one for one in first if one != spare))
        made.until_idle(4)
        yield found
    finally:
        site.kubectl("uncordon", *first)
        made.down()


def drain_of(cluster: SlurmClusterSite, node: str) -> str:
    """The reason of a drained node; empty when it is not drained."""
    shown = cluster.scontrol("show", "node", node)
    if "+DRAIN" not in shown:
        return ""
    return shown.partition("Reason=")[2].partition("\n")[0].rpartition(" [")[0]


def killed(pod_uid: str, words: str) -> None:
    """Kill a process of a pod."""
    os.kill(pid_in_pod(pod_uid, words), signal.SIGKILL)


def test_a_day_loses_no_job_and_ends_with_the_drains_that_should_be_left(
    site: Site, records: ClusterRecords, figure: Callable[[str], None]
) -> None:
    cluster = records.cluster
    exporter = Exporter(site, cluster)
    exporter.enable(jobSource="accounting", accountingJobsLookback="1d")
    for worker in WORKERS:
        checks = f"{SCRIPTS}/checks.json"
        cluster.run(worker, "slurmd", f"cat >{checks} <<'END'\n{json.dumps([CHECK])}\nEND")
    cluster.session("mkdir -p /srv/day")
    machine = RebootedNode(site, cluster, SPARE)
    jobs = Jobs(records)
    flow = threading.Thread(target=jobs.run)
    began = time.monotonic()

    def at(part: float) -> None:
        """Wait until this part of the day is over: the day has its length, whatever happens."""
        time.sleep(max(0.0, began + part * SECONDS - time.monotonic()))

    def drains(wanted: dict[str, str]) -> None:
        found: dict[str, str] = {}

        def are() -> bool:
            found.update({one: drain_of(cluster, one) for one in wanted})
            return found == wanted

        # The assertion names the reasons that there are, so it comes after the wait.
        with contextlib.suppress(AssertionError):
            eventually("the drains are these", are, CALM_S)
        assert found == wanted

    with machine.allowed():
        flow.start()
        try:
            at(0.05)
            cluster.run(BAD, "slurmd", f"touch {FAULT}")
            drains({BAD: BROKEN})
            at(0.15)
            cluster.scontrol("update", f"nodename={DRAINED}", "state=drain", f"reason={USERS}")
            at(0.25)
            killed(site.operator_pod()["metadata"]["uid"], "penstock.controllers")
            machine.maintain(planned=True)
            eventually("its worker has left", lambda: not _runs(cluster, MOVED), CALM_S)
            at(0.5)
            killed(cluster.uid(cluster.slurmctld), "slurmctld ")
            drains({BAD: BROKEN, DRAINED: USERS})
            at(0.6)
            killed(site.operator_pod()["metadata"]["uid"], "penstock.controllers")
            machine.maintain(planned=False)
            eventually("it is uncordoned", lambda: not machine.is_cordoned(), CALM_S)
            at(0.75)
            drains({BAD: BROKEN, DRAINED: USERS, MOVED: ""})
            cluster.run(BAD, "slurmd", f"rm {FAULT}")
            drains({BAD: "", DRAINED: USERS})
            at(1)
        finally:
            jobs.stop()
            flow.join()
        _all_end(cluster, jobs)
        eventually("all are as they should be", lambda: _states(cluster) == _WANTED, CALM_S)
    drains({BAD: "", DRAINED: USERS, MOVED: ""})
    lost = {id_: name for id_, name in jobs.taken.items() if not _has_run(cluster, name)}
    assert lost == {}
    for id_ in jobs.taken:
        records.recorded(id_)
    _same_numbers(records, exporter)
    figure(f"a day of {MINUTES:g} min: {len(jobs.taken)} jobs taken, all of them ran to their end")


_WANTED = {BAD: "idle", DRAINED: "drain", WORKERS[2]: "idle", MOVED: "idle"}


def _runs(cluster: SlurmClusterSite, pod: str) -> bool:
    path = "jsonpath={.status.phase}"
    return cluster.kubectl("get", "pod", pod, "-o", path, "--ignore-not-found") == "Running"


def _states(cluster: SlurmClusterSite) -> dict[str, str]:
    return cluster.nodes()


def _all_end(cluster: SlurmClusterSite, jobs: Jobs) -> None:
    """Wait until no job waits or runs."""
    assert jobs.taken
    queue = "squeue -h -t PENDING,RUNNING,COMPLETING,REQUEUED -o '%i %T %r'"
    left = [""]

    def have() -> bool:
        left[0] = cluster.session(queue)
        return not left[0]

    with contextlib.suppress(AssertionError):
        eventually("all jobs end", have, CALM_S, every=2)
    assert left[0] == ""


def _has_run(cluster: SlurmClusterSite, name: str) -> bool:
    """Whether the last run of a job reached its end."""
    lines = cluster.session(f"cat /srv/day/{name} 2>/dev/null || true").splitlines()
    return bool(lines) and lines[-1].startswith("end ")


def _same_numbers(records: ClusterRecords, exporter: Exporter) -> None:
    """The exporter's jobs are those of sacct, and its nodes those of sinfo."""
    sacct = "sacct -X -n -P -a -S now-1days -o JobIDRaw,State"
    theirs = dict(line.split("|") for line in records.in_jail(sacct).splitlines())

    def jobs() -> dict[str, str]:
        found = exporter.series().get("slurm_job_info", [])
        return {one["job_id"]: one["job_state"] for one, _ in found}

    eventually("jobs are those of sacct", lambda: jobs() == theirs, 60)
    drained = {
        one["node_name"]
        for one, _ in exporter.series()["slurm_node_info"]
        if one["state_is_drain"] == "true"
    }
    sinfo = records.cluster.nodes()
    assert drained == {name for name, state in sinfo.items() if state.startswith("drain")}
