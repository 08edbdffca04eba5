"""A cluster of soperator 1.23 is taken over on a real node while a job runs.

D80 to D82. All objects are captured ones; `e2e_kit.soperator_cluster.CHANGES` has what differs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator

import pytest

from e2e_kit.api import Json, condition
from e2e_kit.site import eventually
from e2e_kit.soperator_cluster import SLURM_LINES, SoperatorCluster, differences, give
from penstock.controllers.runtime.apis import NEBIUS
from penstock.local import install
from penstock.local.components import Size
from penstock.local.images import build_jail, build_operator
from penstock.local.node import Node
from penstock.local.recipes import reference
from penstock.local.soperator import MANIFEST
from penstock.local.target import BuiltIn, Images

LONG_S = 120.0
USER = "alice"
WORKERS = ("worker-0", "worker-1")
JOB = f"""#!/bin/bash
until [ -e /home/{USER}/$1 ]; do sleep 0.2; done
"""

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900), pytest.mark.long]


@pytest.fixture(scope="module")
def node() -> Generator[Node]:
    """One of its own: no operator runs there, which would take the objects over at once."""
    with Node(f"test-jobs-{os.getpid()}") as made:
        yield made.up(Size.NODE)


class Used(SoperatorCluster):
    """The cluster, its users, and the operator that takes it over."""

    def __init__(self, node: Node) -> None:
        operator = build_operator()
        self.roles = give(node, [*build_jail().values(), *operator.values()])
        super().__init__(node, self.roles)
        self._target = BuiltIn(node.name)
        self._images = Images(reference("{role}"), self.roles["operator"])

    def begin(self) -> None:
        """Have the cluster run, with a user who has files."""
        install.apply_kinds(self._target)
        self.prepare()
        self.create()
        eventually(
            "workers are idle", lambda: self.nodes() == dict.fromkeys(WORKERS, "idle"), LONG_S
        )
        self.status()
        self.login(f"useradd --create-home --shell /bin/bash {USER}")
        self.user("head -c 3000000 /dev/urandom >data; ln -s data link; echo x >'odd  name'")
        self.user("mkdir -m 700 secret; touch secret/file; cat >job.sh", JOB)

    def operate(self, count: int) -> None:
        """Have Penstock run, or nobody."""
        if count:
            objects = install.operator(self._images, (NEBIUS,), MANIFEST)
            install.apply(self._target, objects)
        scale = ("-n", install.SOPERATOR, "scale", f"deployment/{install.MANAGER}")
        self.node.kubectl(*scale, f"--replicas={count}")
        if count:
            install.until_running(self._target, install.MANAGER, install.SOPERATOR)
            return
        pods = ("-n", install.SOPERATOR, "get", "pods", "-o", "name")
        eventually("no operator is left", lambda: not self.node.kubectl(*pods).strip())

    def login(self, command: str, stdin: str = "") -> str:
        """Output of a command of root in the jail of a login."""
        inside = ("chroot", "/mnt/jail", "bash", "-c", command)
        return self.kubectl("exec", "-i", "login-0", "-c", "sshd", "--", *inside, stdin=stdin)

    def user(self, command: str, stdin: str = "") -> str:
        """The same of a user."""
        inside = ("chroot", "/mnt/jail", "su", "-", USER, "-c", command)
        return self.kubectl("exec", "-i", "login-0", "-c", "sshd", "--", *inside, stdin=stdin)

    def submit(self, end: str) -> str:
        """A job that runs until the user has a file of this name."""
        job = self.user(f"sbatch --parsable --mem=50 -o /dev/null job.sh {end}").strip()
        eventually(f"job {job} runs", lambda: self.state(job) == "RUNNING", LONG_S)
        return job

    def state(self, job: str) -> str:
        """State of a job, with its exit status once it has ended."""
        said = self.scontrol("show", "job", job)
        words = dict(word.split("=", 1) for word in said.split() if "=" in word)
        state, code = words["JobState"], words["ExitCode"]
        return state if state in ("PENDING", "RUNNING", "COMPLETING") else f"{state} {code}"

    def end(self, job: str, end: str) -> None:
        """Let a job end, and wait for its completion."""
        self.user(f"touch {end}")
        eventually(f"job {job} completes", lambda: self.state(job) == "COMPLETED 0:0", LONG_S)

    def recorded(self, job: str) -> None:
        """See that slurmdbd has the record of a job that completed."""
        command = f"sacct -X -n -P -j {job} -o State"
        eventually(f"{job} is recorded", lambda: self.login(command) == "COMPLETED\n", LONG_S)

    def scontrol(self, *words: str) -> str:
        """Output of scontrol beside slurmctld."""
        return self.kubectl("exec", "controller-0", "-c", "slurmctld", "--", "scontrol", *words)

    def nodes(self) -> dict[str, str]:
        """States of Slurm nodes by name."""
        command = ("sinfo", "-h", "-N", "-p", "main", "-o", "%N %t")
        said = self.kubectl("exec", "controller-0", "-c", "slurmctld", "--", *command)
        return dict(line.split()[:2] for line in said.splitlines())

    def get(self) -> Json:
        """The SlurmCluster."""
        return json.loads(self.kubectl("get", "slurmcluster", self.name, "-o", "json"))

    def reason(self, type_: str) -> str:
        """Status and reason of a condition."""
        found = condition(self.get(), type_)
        return f"{found.get('status')} {found.get('reason')}"


@pytest.fixture(scope="module")
def cluster(node: Node) -> Used:
    made = Used(node)
    made.begin()
    return made


def test_nothing_of_the_cluster_is_penstocks_before(cluster: Used) -> None:
    """Each object has the names, labels, owners and field manager of the capture."""
    assert list(cluster.foreign()) == []


def test_a_cluster_of_soperator_is_taken_over_under_a_job(
    cluster: Used, figure: Callable[[str], None]
) -> None:
    """D80, D81: no pod restarts, the job completes, and all files of the jail are byte-equal."""
    job = cluster.submit("first")
    pods, files = cluster.pods(), cluster.jail()
    figure(f"{len(pods)} pods run, {len(files)} files are in the jail")
    cluster.operate(1)
    eventually(
        "pods are adopted", lambda: cluster.reason("PodsAdopted") == "True PodsAsTheyWere", LONG_S
    )
    eventually(
        "workers belong to the SlurmCluster",
        lambda: all(cluster.owner(one) == {"SlurmCluster"} for one in WORKERS),
        LONG_S,
    )
    eventually("it is available", lambda: cluster.get()["status"]["phase"] == "Available", LONG_S)
    assert cluster.state(job) == "RUNNING"
    assert list(differences(files, cluster.jail())) == []
    cluster.end(job, "first")
    cluster.recorded(job)
    assert cluster.pods() == pods
    assert cluster.owner("controller-0") == cluster.owner("login-0") == {"StatefulSet"}
    assert sorted(cluster.user("srun --mem=50 -N2 hostname").split()) == [*WORKERS]


def test_all_goes_on_without_an_operator(cluster: Used) -> None:
    """D81: what the way back begins with."""
    pods = cluster.pods()
    cluster.operate(0)
    job = cluster.submit("second")
    cluster.end(job, "second")
    assert cluster.pods() == pods
    cluster.operate(1)


def test_the_first_change_replaces_slurmctld_alone_under_a_job(
    cluster: Used, figure: Callable[[str], None]
) -> None:
    """D82: a partition, and Penstock's image of slurmctld, which goes on as root."""
    job, pods = cluster.submit("third"), cluster.pods()
    lines = f"{SLURM_LINES}PartitionName=added Nodes=ALL\n"
    image = {"slurmctld": {"image": cluster.roles["jail-slurmctld"]}}
    spec = {"customSlurmConfig": lines, "slurmNodes": {"controller": image}}
    began = time.monotonic()
    body = json.dumps({"spec": spec})
    cluster.kubectl("patch", "slurmcluster", cluster.name, "--type=merge", "-p", body)
    added = "PartitionName=added"
    eventually("it is applied", lambda: added in cluster.scontrol("show", "partition"), LONG_S)
    figure(f"a partition and another image of slurmctld: {time.monotonic() - began:.1f} s")
    assert cluster.state(job) == "RUNNING"
    cluster.end(job, "third")
    cluster.recorded(job)
    assert sorted(cluster.user("srun --mem=50 -N2 -p added hostname").split()) == [*WORKERS]
    replaced = {name for name, one in cluster.pods().items() if pods.get(name) != one}
    assert {name.split("-")[0] for name in replaced} == {"controller", "sconfigcontroller"}
    eventually("it is applied", lambda: cluster.reason("ConfigApplied").startswith("True"), LONG_S)
