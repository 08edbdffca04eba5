"""A cluster of an external slurmctld that is deleted here, while its jobs run on.

slurmctld, which is on a host outside, outlives Controller, NodeSet and namespace.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass

import pytest

from e2e_kit import manifests
from e2e_kit.api import condition
from e2e_kit.cluster import Cluster
from e2e_kit.external_hosts import SLURM_UID, external_hosts
from e2e_kit.hybrid import (
    JWT_KEY,
    JWT_SECRET,
    LONG_S,
    Slurmctld,
    create_secrets,
    external_controller,
    reported,
    service,
    write_files,
)
from e2e_kit.site import Site, eventually
from penstock.local.errors import LocalError

BURST = ("NodeSet=burst Feature=burst", "PartitionName=burst Nodes=burst MaxTime=UNLIMITED")
ENDS = "until [ -e /tmp/end ]; do sleep 0.2; done"
"""A job that ends when the test says so."""
HELM = ("controllers", "loginsets", "nodesets", "restapis")
"""The order of `helm uninstall` for kinds that it does not know."""
KEPT_S = 45.0
"""So long the worker is seen to stay: longer than a pod takes that is asked to end."""

pytestmark = pytest.mark.timeout(900)


@dataclass
class Left:
    """A cluster here, and its slurmctld outside."""

    cluster: Cluster
    slurmctld: Slurmctld

    def run(self, *command: str) -> str:
        """A command on slurmctld's host."""
        return self.slurmctld.host.run(*command)

    def job(self, number: int) -> dict[str, str]:
        """What slurmctld says of a job."""
        words = self.run("scontrol", "--oneliner", "show", "job", str(number)).split()
        return {key: value for key, _, value in (word.partition("=") for word in words)}

    def state(self, node: str) -> set[str]:
        """State of a node; empty when slurmctld has none of the name."""
        try:
            words = self.run("scontrol", "--oneliner", "show", "node", node).split()
        except LocalError:
            return set()
        state = next(word for word in words if word.startswith("State="))
        return set(state.removeprefix("State=").split("+"))

    def busy(self) -> int:
        """A job that runs on the worker."""
        command = ("sbatch", "--parsable", "--partition=burst", "--mem=50", "--no-requeue")
        where = ("--chdir=/tmp", "--output=/dev/null", f"--wrap={ENDS}")
        number = int(self.run(*command, *where).split(";")[0])
        eventually("it runs", lambda: self.job(number)["JobState"] == "RUNNING", LONG_S, every=1)
        return number


@pytest.fixture
def left(
    site: Site,
    clusters: Callable[[str], Cluster],
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Left]:
    cluster = clusters("left")
    cluster.jwt_secret = JWT_SECRET
    folder = tmp_path_factory.mktemp("left")
    with external_hosts(site.node, folder) as hosts:
        slurmctld = Slurmctld(hosts.host("slurmctld", "metal-ctl"))
        conf = slurmctld.conf("metal", *BURST)
        names = {"metal-ctl": slurmctld.host.address}
        write_files(slurmctld.host, SLURM_UID, conf, names)
        slurmctld.host.keys(SLURM_UID, jwt_key=JWT_KEY)
        slurmctld.start()
        cluster.apply(manifests.namespace(cluster.namespace))
        files = folder / "keys"
        files.mkdir()
        create_secrets(cluster, files)
        cluster.apply(
            *service("metal-ctl", slurmctld.host),
            external_controller(cluster),
            manifests.restapi(),
            manifests.nodeset(1, "burst"),
        )
        reported(cluster, "SlurmctldAnswers")
        found = Left(cluster, slurmctld)
        eventually("idle", lambda: found.state("burst-0") >= {"IDLE"}, LONG_S, every=1)
        cluster.until_ready("nodesets", "burst", LONG_S)
        yield found
        with contextlib.suppress(LocalError):
            cluster.kubectl("delete", "pods", "--all", "--timeout=60s")


def delete(cluster: Cluster, *kinds: str) -> None:
    for kind in kinds:
        cluster.kubectl("delete", kind, "--all", "--wait=false")


def stays(left: Left, number: int, seconds: float = KEPT_S) -> None:
    """The job runs on, and its worker is neither gone nor going, for so long."""
    api, space = left.cluster.site.api, left.cluster.namespace
    seen: list[str] = []

    def goes() -> bool:
        pod = api.get("pods", space, "burst-0")
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            seen.append(f"pod: {json.dumps(pod and pod['metadata'])[:300]}")
        if (state := left.job(number)["JobState"]) != "RUNNING":
            seen.append(f"job: {state}")
        return bool(seen)

    with contextlib.suppress(AssertionError):
        eventually("something goes", goes, seconds, every=1)
    assert not seen


def ends(left: Left, number: int) -> None:
    """The job comes to its end by itself, and then the worker goes, and all else with it."""
    cluster, api = left.cluster, left.cluster.site.api
    cluster.on("burst-0", "touch /tmp/end")
    eventually(
        "it ended by itself",
        lambda: left.job(number)["JobState"] == "COMPLETED",
        LONG_S,
        every=1,
    )
    for kind in ("pods", *HELM):
        eventually(
            f"{kind} are gone", lambda k=kind: not api.list(k, cluster.namespace), LONG_S, every=1
        )
    assert left.state("burst-0") == set()
    assert left.job(number)["Restarts"] == "0"


@pytest.mark.parametrize("order", [HELM, tuple(reversed(HELM))], ids=["uninstall", "reversed"])
def test_a_job_of_an_external_slurmctld_ends_before_its_worker_is_deleted(
    left: Left, order: tuple[str, ...]
) -> None:
    """Controller first, as `helm uninstall` does, or slurmrestd first."""
    number = left.busy()
    delete(left.cluster, *order)
    eventually("it drains", lambda: "DRAIN" in left.state("burst-0"), LONG_S, every=1)
    stays(left, number)
    said = condition(left.cluster.get("nodesets", "burst"), "Ready")
    assert "slurmctld is external and keeps running" in said["message"], said
    ends(left, number)


def test_an_operator_that_starts_after_the_controller_is_gone_asks_all_the_same(left: Left) -> None:
    """By what the NodeSet remembers."""
    number = left.busy()
    delete(left.cluster, "controllers")
    api, space = left.cluster.site.api, left.cluster.namespace
    eventually("the Controller is gone", lambda: not api.list("controllers", space), LONG_S)
    with left.cluster.site.without_operator():
        pass
    delete(left.cluster, "nodesets", "restapis")
    eventually("it drains", lambda: "DRAIN" in left.state("burst-0"), LONG_S, every=1)
    stays(left, number)
    ends(left, number)


def test_a_namespace_that_is_deleted_goes_and_its_job_is_reported_by_slurmctld(
    left: Left,
) -> None:
    """Kubernetes deletes the pods of a namespace itself and asks nobody (docs/admin/hybrid.md)."""
    number, space = left.busy(), left.cluster.namespace
    left.cluster.site.kubectl("delete", "namespace", space, "--wait=false")
    eventually(
        "the namespace is gone",
        lambda: not left.cluster.site.kubectl("get", "namespace", space, "--ignore-not-found"),
        LONG_S,
        every=1,
    )
    assert left.job(number)["JobState"] == "NODE_FAIL"


def test_nodesets_that_are_deleted_before_the_namespace_lose_no_job(left: Left) -> None:
    """The way that docs/admin/hybrid.md gives."""
    number, space = left.busy(), left.cluster.namespace
    delete(left.cluster, "nodesets")
    stays(left, number)
    left.cluster.on("burst-0", "touch /tmp/end")
    left.cluster.kubectl("wait", "--for=delete", "nodeset/burst", "--timeout=180s")
    assert left.job(number)["JobState"] == "COMPLETED"
    left.cluster.site.kubectl("delete", "namespace", space, "--timeout=180s")
