"""Everything is killed and frozen at random while jobs flow and users change things.

    PENSTOCK_STORM_MINUTES=30 PENSTOCK_SEED=1 pytest tests/e2e/test_storm.py -s

Every job is accounted for at the end: it ran to its end, or Slurm refused it and it never ran. No
pod was deleted by the operator while a job was on it, and the cluster is as declared again.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from e2e_kit import manifests
from e2e_kit.chance import seed
from e2e_kit.cluster import Cluster
from e2e_kit.jobs import FINAL, Account, JobFlow, Known, Run, account
from e2e_kit.site import Site, Write, eventually
from e2e_kit.storm import Storm, targets
from e2e_kit.undying import undying_operator
from penstock.local.errors import LocalError

pytestmark = pytest.mark.long

MINUTES = float(os.environ.get("PENSTOCK_STORM_MINUTES", "2"))
MOST = 4
"""Workers."""
CALM = 420.0
"""Seconds that the cluster has to come to rest, with the kubelet's longest back-off in them."""
LISTING = 'cd {} && for f in job-*; do while read -r line; do echo "$f:$line"; done < "$f"; done'
HELD = "launch_failed_requeued_held"
"""What slurmctld says of a job whose slurmd failed while it launched."""
REGISTER_EVERY = 60.0
"""Longer than BatchStartTimeout and MessageTimeout together, for which slurmctld trusts itself."""
CONF = f"{manifests.EXTRA_CONF}MinJobAge=60000\nSlurmdTimeout=120\n"


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("storm")
    workers = manifests.on_shared_disk(manifests.nodeset(2), cluster.shared)
    persistent = {"enabled": True, "resources": {"requests": {"storage": "1Gi"}}}
    controller = manifests.controller(CONF, persistence=persistent)
    cluster.create(controller, manifests.restapi(), workers)
    cluster.until_ready("nodesets", "compute")
    cluster.until_idle("compute-0", "compute-1")
    return cluster


@pytest.mark.timeout(MINUTES * 60 + 900)
def test_in_a_storm_of_faults_every_job_is_accounted_for(site: Site, cluster: Cluster) -> None:
    chance = random.Random(seed())
    flow = JobFlow(cluster, random.Random(chance.random()))
    storm = Storm(targets(site.node), random.Random(chance.random()))
    users = Users(cluster, random.Random(chance.random()))
    with undying_operator(site), ThreadPoolExecutor(3) as pool:
        running = [pool.submit(one.run) for one in (flow, storm, users)]
        try:
            # Not a wait for something: this is how long things break.
            time.sleep(MINUTES * 60)
        finally:
            for one in (storm, users, flow):
                one.stop()
        for one in running:
            one.result()
        began = time.monotonic()
        _calm(cluster)
        print(f"calm {time.monotonic() - began:.0f} s later; faults: {dict(storm.counts)}")
    kills = [when for name, when in storm.kills if name == "slurmctld"]
    told = _settle(cluster, flow, kills)
    print(f"{len(flow.jobs)} jobs: {dict(told.counts)}; changes by users: {users.changes}")
    assert told.lost == (), _said_of(cluster, told)
    assert _deleted_under_a_job(site, cluster, told) == []
    assert told.counts["completed"] > 0


class Users:
    """Scale, cordon and configure at random moments, with whatever errors come of it."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self.changes = 0
        self._cluster = cluster
        self._random = chance
        self._stop = threading.Event()

    def run(self) -> None:
        """Change things until `stop`."""
        while not self._stop.wait(self._random.uniform(4, 15)):
            try:
                self._random.choice((self._scale, self._scale, self._cordon, self._configure))()
            except LocalError:
                # The API server was away: a user would try again, and so does the next turn.
                continue
            self.changes += 1

    def stop(self) -> None:
        """Change nothing more."""
        self._stop.set()

    def _scale(self) -> None:
        replicas = self._random.randint(1, MOST)
        self._kubectl("scale", "nodeset/compute", f"--replicas={replicas}")

    def _cordon(self) -> None:
        pod = f"compute-{self._random.randrange(MOST)}"
        wish = self._random.choice(("=true", "-"))
        self._kubectl("annotate", "--overwrite", "pod", pod, f"slinky.slurm.net/pod-cordon{wish}")

    def _configure(self) -> None:
        conf = f"{CONF}MessageTimeout={self._random.randint(10, 20)}\n"
        change = json.dumps({"spec": {"extraConf": conf}})
        self._kubectl("patch", "controllers", manifests.NAME, "--type=merge", "-p", change)

    def _kubectl(self, *arguments: str) -> None:
        self._cluster.kubectl("--request-timeout=5s", *arguments)


def _calm(cluster: Cluster) -> None:
    """Ask for two workers, none of them cordoned, until that is so and all jobs have ended."""

    def asked() -> bool:
        cluster.kubectl("scale", "nodeset/compute", "--replicas=2")
        cluster.kubectl(
            "annotate",
            "pods",
            "-l",
            "app.kubernetes.io/name=slurmd",
            "slinky.slurm.net/pod-cordon-",
        )
        return True

    eventually("the API server takes changes", asked, CALM, every=2)
    cluster.until_ready("nodesets", "compute", CALM)
    _until_all_ended(cluster)
    eventually("two workers are idle", lambda: _idle(cluster), CALM)


def _until_all_ended(cluster: Cluster) -> None:
    """Wait for all jobs, also for those that slurmctld holds, or whose end it forgot.

    A job whose slurmd was killed while it launched is held until somebody releases it. A slurmctld
    that is killed before it saved that a job ended believes it running. It learns better when
    slurmd registers, perhaps half an hour later; a slurmd that starts does so at once.
    """
    tries = int(CALM / REGISTER_EVERY)
    for number in range(tries):
        try:
            eventually("all jobs end", lambda: _all_ended(cluster), REGISTER_EVERY, every=2)
        except AssertionError:
            if number == tries - 1:
                raise
            if not any("RUNNING" in one.state for one in _known(cluster).values()):
                continue
            for pod in cluster.pods():
                # One that was ended a while ago may still wait for the kubelet to start it.
                with contextlib.suppress(LocalError):
                    cluster.on(pod, "kill $(pidof -s slurmd)")
        else:
            return


def _idle(cluster: Cluster) -> bool:
    """Which two of them stay, the order of scale-in decides."""
    return list(cluster.states().values()) == [{"IDLE"}, {"IDLE"}]


def _known(cluster: Cluster) -> dict[int, Known]:
    jobs = cluster.rest("GET", "jobs/")["jobs"]
    return {one["job_id"]: Known(one["name"], frozenset(one["job_state"])) for one in jobs}


def _all_ended(cluster: Cluster) -> bool:
    for one in cluster.rest("GET", "jobs/")["jobs"]:
        if "PENDING" in one["job_state"] and one["state_reason"].replace(" ", "_") == HELD:
            cluster.run("scontrol", "release", str(one["job_id"]))
    return not _unfinished(cluster)


def _unfinished(cluster: Cluster) -> bool:
    states = [one.state for one in _known(cluster).values()]
    return any(not state & FINAL or "COMPLETING" in state for state in states)


def _settle(cluster: Cluster, flow: JobFlow, kills: list[float]) -> Account:
    texts: dict[str, str] = {}
    listed = cluster.site.node.run("sh", "-c", LISTING.format(cluster.shared))
    for line in listed.splitlines():
        name, _, rest = line.partition(":")
        texts[name] = texts.get(name, "") + rest + "\n"
    return account(flow.jobs, texts, _known(cluster), kills)


def _said_of(cluster: Cluster, told: Account) -> str:
    """What Slurm's daemons logged of the jobs that are not accounted for, as far as it is kept."""
    numbers = [number for one in told.lost if (number := one.partition("(")[2].partition(")")[0])]
    found = list(told.lost)
    for number in numbers:
        found.append(json.dumps(cluster.rest("GET", f"job/{number}").get("jobs")))
        search = f"grep -rhwE 'JobId={number}|[Jj]ob {number}' /var/log/pods | sort -u | tail -n 80"
        found.append(cluster.site.node.run("sh", "-c", search))
    return "\n".join(found)


def _deleted_under_a_job(site: Site, cluster: Cluster, told: Account) -> list[tuple[Write, str]]:
    """Deletes by the operator of pods on which a job ran at that time."""
    deletes = [
        one
        for one in site.operator_writes(cluster.namespace)
        if (one.verb, one.resource) == ("delete", "pods") and one.code < 300
    ]
    return [
        (delete, name)
        for delete in deletes
        for name, run in told.runs
        if delete.name.endswith(f"/{run.node}")
        and run.begin < delete.at.timestamp() < (run.end or float("inf"))
        and not _began_again(told, name, run, delete.at.timestamp())
    ]


def _began_again(told: Account, name: str, run: Run, when: float) -> bool:
    """Whether a cut run had been followed by the next one of its job before that moment."""
    later = [r for n, r in told.runs if n == name and r.restart > run.restart]
    return any(one.begin < when for one in later)
