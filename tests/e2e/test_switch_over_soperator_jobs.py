"""A cluster of soperator 1.23, and one of 5.0, is taken over on a real node while a job runs.

D80 to D82. All objects are captured ones; `e2e_kit.soperator_cluster.CHANGES` has what differs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator

import pytest

from e2e_kit.api import Json, condition
from e2e_kit.release import RELEASE
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
WORKERS = {"1.23": ("worker-0", "worker-1"), "5.0": ("worker-cpu-0", "worker-cpu-1")}
"""Those on which the jobs run."""
EPHEMERAL = {"worker-eph-0": "idle", "worker-eph-1": "idle~", "worker-eph-2": "idle~"}
"""The first one is active, the others are powered down."""
PARTITION = {"1.23": "main", "5.0": "debug"}
"""The one of these workers."""
OWNER = {"1.23": "SlurmCluster", "5.0": "NodeSet"}
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

    def __init__(self, node: Node, version: str) -> None:
        operator = build_operator()
        self.roles = give(node, [*build_jail(RELEASE).values(), *operator.values()])
        super().__init__(node, self.roles, version)
        self.workers, self.partition = WORKERS[version], PARTITION[version]
        self.slurmctld, self.sshd = f"{self.prefix}controller-0", f"{self.prefix}login-0"
        self._target = BuiltIn(node.name)
        self.first: dict[str, tuple[str, int]] = {}
        self._images = Images(reference("{role}"), self.roles["operator"])

    def begin(self) -> None:
        """Have the cluster run, with a user who has files."""
        install.apply_kinds(self._target)
        self.prepare()
        self.create()
        eventually(
            "workers are idle", lambda: self.nodes() == dict.fromkeys(self.workers, "idle"), LONG_S
        )
        self.status()
        self.login(f"useradd --create-home --shell /bin/bash {USER}")
        self.user("head -c 3000000 /dev/urandom >data; ln -s data link; echo x >'odd  name'")
        self.user("mkdir -m 700 secret; touch secret/file; cat >job.sh", JOB)
        self.first = self.pods()

    def are_kept(self) -> bool:
        """Whether all pods of the beginning run on; those of Penstock may be beside them."""
        return self.first.items() <= self.pods().items()

    def operate(self, count: int) -> None:
        """Have Penstock run, or nobody."""
        if count:
            every = install.operator(self._images, (NEBIUS,), MANIFEST)
            # The cluster of 5.0 is in the operator's namespace, which has pod security by the
            # manifests, and not by the chart.
            metadata = {"name": install.SOPERATOR}
            space: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            others = [one for one in every if one["kind"] != "Namespace"]
            install.apply(self._target, [space, *others])
        scale = ("-n", install.SOPERATOR, "scale", f"deployment/{install.MANAGER}")
        self.node.kubectl(*scale, f"--replicas={count}")
        if count:
            install.until_running(self._target, install.MANAGER, install.SOPERATOR)
            return
        pods = ("-n", install.SOPERATOR, "get", "pods", "-o", "name")
        # The cluster of 5.0 is in the same namespace.
        manager = f"pod/{install.MANAGER}-"
        eventually("no operator is left", lambda: manager not in self.node.kubectl(*pods))

    @property
    def options(self) -> str:
        """Options of a job."""
        return f"--mem=50 -p {self.partition}"

    def hosts(self) -> list[str]:
        """Where a job on all workers runs."""
        return sorted(self.user(f"srun {self.options} -N{len(self.workers)} hostname").split())

    def login(self, command: str, stdin: str = "") -> str:
        """Output of a command of root in the jail of a login."""
        inside = ("chroot", "/mnt/jail", "bash", "-c", command)
        return self.kubectl("exec", "-i", self.sshd, "-c", "sshd", "--", *inside, stdin=stdin)

    def user(self, command: str, stdin: str = "") -> str:
        """The same of a user."""
        inside = ("chroot", "/mnt/jail", "su", "-", USER, "-c", command)
        return self.kubectl("exec", "-i", self.sshd, "-c", "sshd", "--", *inside, stdin=stdin)

    def submit(self, end: str) -> str:
        """A job that runs until the user has a file of this name."""
        job = self.user(f"sbatch --parsable {self.options} -o /dev/null job.sh {end}").strip()
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
        return self.kubectl("exec", self.slurmctld, "-c", "slurmctld", "--", "scontrol", *words)

    def patch(self, kind: str, name: str, spec: Json) -> None:
        """Merge into the spec of an object."""
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def nodes(self, partition: str = "") -> dict[str, str]:
        """States of the Slurm nodes of a partition by name."""
        command = ("sinfo", "-h", "-N", "-p", partition or self.partition, "-o", "%N %t")
        said = self.kubectl("exec", self.slurmctld, "-c", "slurmctld", "--", *command)
        return dict(line.split()[:2] for line in said.splitlines())

    def get(self) -> Json:
        """The SlurmCluster."""
        return json.loads(self.kubectl("get", "slurmcluster", self.name, "-o", "json"))

    def reason(self, type_: str) -> str:
        """Status and reason of a condition."""
        found = condition(self.get(), type_)
        return f"{found.get('status')} {found.get('reason')}"


@pytest.fixture(scope="module", params=["1.23", "5.0"])
def cluster(node: Node, request: pytest.FixtureRequest) -> Generator[Used]:
    """One after the other: both have the same node port."""
    made = Used(node, request.param)
    made.begin()
    yield made
    made.operate(0)
    made.end_all()


def test_nothing_of_the_cluster_is_penstocks_before(cluster: Used) -> None:
    """Each object has the names, labels, owners and field manager of the capture."""
    assert list(cluster.foreign()) == []


def test_a_cluster_of_soperator_is_taken_over_under_a_job(
    cluster: Used, figure: Callable[[str], None]
) -> None:
    """D80, D81: no pod restarts, the job completes, and all files of the jail are byte-equal."""
    job = cluster.submit("first")
    files = cluster.jail()
    figure(f"{len(cluster.first)} pods run, {len(files)} files are in the jail")
    cluster.operate(1)
    began = time.monotonic()
    eventually(
        "pods are adopted", lambda: cluster.reason("PodsAdopted") == "True PodsAsTheyWere", LONG_S
    )
    eventually(
        "workers belong to the SlurmCluster, or to the NodeSet",
        lambda: all(cluster.owner(one) == {OWNER[cluster.version]} for one in cluster.workers),
        LONG_S,
    )
    eventually("it is available", lambda: cluster.get()["status"]["phase"] == "Available", LONG_S)
    figure(f"version {cluster.version} is taken over {time.monotonic() - began:.1f} s later")
    assert cluster.state(job) == "RUNNING"
    assert list(differences(files, cluster.jail())) == []
    cluster.end(job, "first")
    cluster.recorded(job)
    assert cluster.are_kept()
    assert cluster.owner(cluster.slurmctld) == cluster.owner(cluster.sshd) == {"StatefulSet"}
    assert cluster.hosts() == [*cluster.workers]


def test_all_goes_on_without_an_operator(cluster: Used) -> None:
    """D81: what the way back begins with."""
    cluster.operate(0)
    job = cluster.submit("second")
    cluster.end(job, "second")
    assert cluster.are_kept()
    cluster.operate(1)


@pytest.mark.parametrize("cluster", ["5.0"], indirect=True)
def test_new_workers_join_a_slurmctld_whose_slurm_conf_names_them(cluster: Used) -> None:
    """D82: an ephemeral NodeSet has its active nodes, and no operator reports a drift.

    One that is powered down gets its pod for a job, though slurmctld's pod is still the original's.
    """
    wanted = dict.fromkeys(cluster.workers, "idle") | EPHEMERAL
    eventually("the active ones are idle", lambda: cluster.nodes("main") == wanted, LONG_S)
    assert cluster.user("srun --mem=50 -w worker-eph-2 hostname").split() == ["worker-eph-2"]
    assert cluster.are_kept()
    nodeset = json.loads(
        cluster.kubectl("get", "nodesets.slurm.nebius.ai", "worker-cpu", "-o", "json")
    )
    assert condition(nodeset, "Drifted").get("status") != "True"


@pytest.mark.parametrize("cluster", ["1.23"], indirect=True)
def test_the_first_change_replaces_slurmctld_alone_under_a_job(
    cluster: Used, figure: Callable[[str], None]
) -> None:
    """D82: a partition, and Penstock's image of slurmctld, which goes on as root."""
    job, pods = cluster.submit("third"), cluster.pods()
    lines = f"{SLURM_LINES}PartitionName=added Nodes=ALL\n"
    image = {"slurmctld": {"image": cluster.roles["jail-slurmctld"]}}
    spec = {"customSlurmConfig": lines, "slurmNodes": {"controller": image}}
    began = time.monotonic()
    cluster.patch("slurmcluster", cluster.name, spec)
    added = "PartitionName=added"
    eventually("it is applied", lambda: added in cluster.scontrol("show", "partition"), LONG_S)
    figure(f"a partition and another image of slurmctld: {time.monotonic() - began:.1f} s")
    assert cluster.state(job) == "RUNNING"
    cluster.end(job, "third")
    cluster.recorded(job)
    assert sorted(cluster.user("srun --mem=50 -N2 -p added hostname").split()) == [*cluster.workers]
    replaced = {name for name, one in cluster.pods().items() if pods.get(name) != one}
    assert {name.split("-")[0] for name in replaced} == {"controller", "sconfigcontroller"}
    eventually("it is applied", lambda: cluster.reason("ConfigApplied").startswith("True"), LONG_S)


@pytest.mark.parametrize("cluster", ["1.23"], indirect=True)
def test_an_image_without_pyxis_stops_at_the_first_worker_and_names_both_ways_out(
    cluster: Used,
) -> None:
    """D82: no job fails, the other worker runs on, and an optional plug-in ends the trouble."""
    job, pods = cluster.submit("fourth"), cluster.pods()
    (busy,) = cluster.user(f"squeue -h -j {job} -o %N").split()
    (idle,) = set(cluster.workers) - {busy}
    image = {"slurmd": {"image": cluster.roles["jail-slurmd"]}}
    cluster.patch("slurmcluster", cluster.name, {"slurmNodes": {"worker": image}})

    def advised() -> bool:
        found = [one.get("message", "") for one in cluster.get()["status"]["conditions"]]
        print(
            found,
            cluster.nodes(),
            cluster.kubectl("get", "pods"),
            cluster.kubectl("logs", idle, "-c", "slurmd", "--tail=8"),
        )
        return any("plugStackConfig.pyxis.required" in one and idle in one for one in found)

    eventually("the SlurmCluster names the plug-in and what to do", advised, LONG_S)
    assert cluster.state(job) == "RUNNING"
    assert cluster.pods()[busy] == pods[busy]
    assert cluster.user(f"srun {cluster.options} hostname").split() == [busy]
    cluster.patch("slurmcluster", cluster.name, {"plugStackConfig": {"pyxis": {"required": False}}})
    eventually("the new worker is idle", lambda: cluster.nodes().get(idle) == "idle", LONG_S)
    cluster.end(job, "fourth")
    eventually(
        "the other one is replaced",
        lambda: cluster.pods().get(busy, pods[busy]) != pods[busy],
        LONG_S,
    )
    both = dict.fromkeys(cluster.workers, "idle")
    eventually("both are idle", lambda: cluster.nodes() == both, LONG_S)
    assert cluster.hosts() == [*cluster.workers]
