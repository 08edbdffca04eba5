"""Both kinds of cluster on a Kubernetes whose DNS domain is another one than cluster.local.

S179. No option of the operator names the domain: it reads the resolv.conf of its pod.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from e2e_kit import manifests
from e2e_kit.api import restarts
from e2e_kit.cluster import Cluster
from e2e_kit.images import give_all
from e2e_kit.release import RELEASE
from e2e_kit.site import Site
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.local.images import build_jail
from penstock.local.linux import why_not
from penstock.local.node import Node

DOMAIN = "slurm.example.com"
DEFAULT = "cluster.local"
EXAMPLE = Path(__file__).parents[2] / "examples/slurmcluster.yaml"

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "can run"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def site() -> Generator[Site]:
    """A Kubernetes of its own."""
    with Node(f"test-domain-{secrets.token_hex(3)}") as node:
        found = Site(node.up(domain=DOMAIN))
        found.install()
        yield found


def test_daemons_and_logins_of_a_controller_find_each_other(
    clusters: Callable[[str], Cluster],
) -> None:
    cluster = clusters("domain")
    objects = (manifests.controller(), manifests.restapi(), manifests.nodeset(1))
    cluster.create(*objects, manifests.loginset())
    cluster.until_idle("compute-0", timeout=180)
    cluster.until_ready("loginsets", "login")
    host = f"{manifests.NAME}-controller.{cluster.namespace}.svc.{DOMAIN}"
    assert cluster.on("compute-0", f"getent hosts {host}")
    login = ("exec", "deploy/login", "-c", "login", "--")
    assert cluster.kubectl(*login, "srun", "hostname").strip() == "compute-0"
    assert all(restarts(pod) == 0 for pod in cluster.pods().values())


def test_all_pods_of_a_slurmcluster_start_once_and_a_job_runs(site: Site) -> None:
    images = give_all(site.node, build_jail(RELEASE).values())
    made = SlurmClusterSite(site, f"domain-{secrets.token_hex(2)}", EXAMPLE.read_text(), images)
    try:
        made.up()
        made.until_login()
        found = made.run("login-0", "sshd", "cat /etc/resolv.conf /mnt/jail/etc/slurm/*.conf*")
        assert f".svc.{DOMAIN}" in found
        assert DEFAULT not in found
        assert made.session("getent hosts worker-1")
        said = made.session("srun -N2 hostname").split()
        assert sorted(said) == ["worker-0", "worker-1"]
        pods = site.api.list("pods", made.namespace)
        assert len(pods) > 4
        assert {pod["metadata"]["name"]: restarts(pod) for pod in pods if restarts(pod)} == {}
    finally:
        made.down()
