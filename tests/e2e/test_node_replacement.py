"""A Kubernetes node that a check in jobs finds broken, and its replacement. S174."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e_kit.api import Json
from e2e_kit.chart_rights import cluster_rights
from e2e_kit.further_node import further_node
from e2e_kit.images import give_all
from e2e_kit.release import RELEASE
from e2e_kit.site import OPERATOR, Site, eventually
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.local import install
from penstock.local.images import build_jail

EXAMPLE = Path(__file__).parents[2] / "examples/slurmcluster.yaml"
CHECK, WORKER, SPARE = "bad-link", "worker-1", "spare"
BROKEN = f"/srv/broken-{WORKER}"
ACTIVE_CHECK: Json = {
    "name": CHECK,
    "checkType": "slurmJob",
    "schedule": "0 0 1 1 *",
    "suspend": False,
    "runAfterCreation": False,
    "slurmJobSpec": {
        "eachWorkerJobs": True,
        "sbatchScript": "#!/bin/bash\nsleep 5; [ ! -e /srv/broken-$(hostname) ]\n",
    },
    "failureReactions": {"drainSlurmNode": {"drainReasonPrefix": "[hardware_problem]"}},
}
LONG_S = 240.0

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def spare(site: Site) -> Generator[str]:
    """Another Kubernetes node, with a kubelet of its own."""
    with further_node(site, SPARE) as name:
        yield name


@pytest.fixture(scope="module")
def cluster(site: Site, spare: str) -> Generator[SlurmClusterSite]:
    """A SlurmCluster whose second worker is on the spare Kubernetes node."""
    images = give_all(site.node, build_jail(RELEASE).values())
    name = f"broken-{secrets.token_hex(2)}"
    documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
    documents[-1]["spec"]["slurmNodes"]["worker"]["size"] = 1
    text = yaml.safe_dump_all(documents)
    made = SlurmClusterSite(site, name, text, images, workers={"worker-0"})
    first = [one for one in site.kubectl("get", "nodes", "-o", NAMES).split() if one != spare]
    account = {"name": OPERATOR, "namespace": install.SYSTEM}
    try:
        for one in (*first, spare):
            # All kubelets here report one system UUID.
            of_cloud = json.dumps({"spec": {"providerID": f"local://{one}"}})
            site.kubectl("patch", "node", one, "-p", of_cloud)
        site.apply(
            *cluster_rights("outages", account, name), *cluster_rights("replacement", account, name)
        )
        site.kubectl("cordon", spare)
        made.up()
        site.kubectl("uncordon", spare)
        site.kubectl("cordon", *first)
        made.patch({"slurmNodes": {"worker": {"size": 2}}})
        placed = ("get", "pod", WORKER, "-o", "jsonpath={.spec.nodeName}", "--ignore-not-found")
        eventually("the worker is placed", lambda: made.kubectl(*placed) == spare, LONG_S)
        # While its Kubernetes node is cordoned a worker is drained.
        site.kubectl("uncordon", *first)
        made.until_idle(2)
        made.until_login()
        yield made
    finally:
        site.kubectl("uncordon", *first)
        made.down()


NAMES = "jsonpath={.items[*].metadata.name}"


def jobs(cluster: SlurmClusterSite, name: str) -> list[dict[str, Any]]:
    """The jobs of that name on the worker, the first one first."""
    every: list[dict[str, Any]] = json.loads(cluster.scontrol("show", "jobs", "--json"))["jobs"]
    return [one for one in every if one["name"] == name and one["nodes"] == WORKER]


def test_the_next_kubernetes_node_is_tested_by_the_check_before_a_users_job(
    site: Site, cluster: SlurmClusterSite, spare: str, figure: Callable[[str], None]
) -> None:
    """S174, with a plain Kubernetes provider: the Node object is deleted."""
    cluster.run("login-0", "sshd", f"mkdir -p /mnt/jail/srv && touch /mnt/jail{BROKEN}")
    cluster.apply(
        {
            "apiVersion": "slurm.nebius.ai/v1alpha1",
            "kind": "ActiveCheck",
            "metadata": {"name": CHECK},
            "spec": {"slurmClusterRefName": cluster.name, **ACTIVE_CHECK},
        }
    )
    exists = ("get", "cronjob", CHECK, "-o", "name", "--ignore-not-found")
    eventually("the check is there", lambda: cluster.kubectl(*exists), LONG_S)
    cluster.kubectl("create", "job", "by-hand", f"--from=cronjob/{CHECK}")
    words = f"[hardware_problem] {CHECK}: job"
    shown = ("show", "node", WORKER)
    eventually("it is drained", lambda: words in cluster.scontrol(*shown), LONG_S)
    cluster.run("login-0", "sshd", f"rm /mnt/jail{BROKEN}")
    cluster.session(f"sbatch -J users -w {WORKER} --mem=1M -o /dev/null --wrap true")
    cluster.kubectl("annotate", "slurmcluster", cluster.name, "node.penstock.dev/replace=1")
    gone = ("get", "node", spare, "-o", "name", "--ignore-not-found")
    eventually("the Kubernetes node is deleted", lambda: not site.kubectl(*gone), LONG_S)
    eventually("the user's job ends", lambda: _ended(jobs(cluster, "users")), LONG_S)
    eventually("it is idle", lambda: cluster.nodes().get(WORKER) == "idle", LONG_S)
    (theirs,), checks = jobs(cluster, "users"), jobs(cluster, CHECK)
    assert [one["job_state"] for one in checks] == [["FAILED"], ["COMPLETED"]]
    tested, began = (one["number"] for one in (checks[-1]["end_time"], theirs["start_time"]))
    assert tested <= began
    figure(f"a user's job began {began - tested} s after the check of the next node")
    runs = cluster.kubectl("get", "jobs", "-o", NAMES).split()
    assert sum(one.startswith(f"{CHECK}-") for one in runs) == 1
    records = "jsonpath={.metadata.annotations.node\\.penstock\\.dev/replacements}"

    def has_ended() -> bool:
        text = cluster.kubectl("get", "slurmcluster", cluster.name, "-o", records)
        return [one.get("ended") for one in json.loads(text)] == [True]

    eventually("the replacement has ended", has_ended, LONG_S)
    assert "No reservations" in cluster.scontrol("show", "reservation")


def _ended(found: list[dict[str, Any]]) -> bool:
    return [one["job_state"] for one in found] == [["COMPLETED"]]
