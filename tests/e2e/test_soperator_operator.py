"""The operator by the chart `soperator`, beside the one that other tests share, on a real node."""

from __future__ import annotations

import json
from collections.abc import Generator

import pytest
import yaml

from e2e_kit.site import Site, eventually
from penstock.controllers.registry import SERVED_APIS
from penstock.controllers.runtime.apis import NEBIUS
from penstock.local.errors import LocalError
from support import nebius
from support.release import Release

# Helm may have to be compiled first.
pytestmark = pytest.mark.timeout(1800)

OWN = "soperator-chart"
"""Namespace of the operator, the only one that it watches."""
NAME = "deployment/soperator-manager"
LEASE = {one.group: one.lease for one in SERVED_APIS}


@pytest.fixture(scope="module")
def release(site: Site) -> Generator[Release]:
    if not site.images.operator:
        pytest.skip("the images of a node that somebody else filled are not known")
    release = Release(site.node, "soperator", OWN)
    repository, _, tag = site.images.operator.rpartition(":")
    manager = {
        "image": {"repository": repository, "tag": tag},
        "slurmImage": site.images.slurm,
        "env": {"slurmOperatorWatchNamespaces": OWN},
    }
    try:
        release.install({"controllerManager": {"manager": manager}}, "soperator")
        site.kubectl("-n", OWN, "rollout", "status", NAME, "--timeout=120s")
        yield release
    finally:
        release.uninstall()
        site.kubectl("delete", "namespace", OWN, "--ignore-not-found", "--wait=false")


def test_pod_process_arguments_and_log_are_what_users_know(site: Site, release: Release) -> None:
    """S087."""
    assert "soperator-manager-" in site.kubectl("get", "pods", "-n", OWN, "-o", "wide")
    shown = site.kubectl("exec", "-n", OWN, NAME, "-c", "manager", "--", "ps", "aux")
    (process,) = (line for line in shown.splitlines() if "slurm_operator" in line)
    assert "--leader-elect" in process
    found = site.kubectl("exec", "-n", OWN, NAME, "-c", "manager", "--", "pgrep", "slurm_operator")
    assert found.split() == ["1"]
    arguments = site.kubectl(
        "get", "pods", "-n", OWN, "-o", "jsonpath={.items[0].spec.containers[0].args}"
    )
    assert json.loads(arguments)
    assert "starting" in site.kubectl("logs", "-n", OWN, NAME, "-c", "manager")


def test_it_leads_its_own_api_and_no_other(site: Site, release: Release) -> None:
    leases = json.loads(site.kubectl("get", "leases", "-n", OWN, "-o", "json"))["items"]
    holders = {one["metadata"]["name"]: one["spec"]["holderIdentity"] for one in leases}
    assert set(holders) == {LEASE[NEBIUS]}
    assert holders[LEASE[NEBIUS]].startswith("soperator-manager-")


def test_its_webhook_rejects_an_unknown_filter_with_the_known_ones(
    site: Site, release: Release
) -> None:
    changes = {"spec.slurmNodes.login.k8sNodeFilterName": "nowhere"}
    made = nebius.manifest("slurmcluster-1.23-0", changes)
    text = yaml.safe_dump({**made, "metadata": {"name": "probe", "namespace": OWN}})

    def answer() -> str:
        try:
            site.kubectl("create", "--dry-run=server", "-f", "-", stdin=text)
        except LocalError as error:
            return str(error)
        return ""

    eventually("the webhook is asked", lambda: "known: cpu" in answer())
    assert "'nowhere' is no entry of spec.k8sNodeFilters" in answer()
