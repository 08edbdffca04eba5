"""The webhooks of the operator's pod, asked by the API server through their Service."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.cluster import Cluster
from e2e_kit.site import OPERATOR, Site, eventually
from penstock.local.errors import LocalError
from penstock.local.install import SYSTEM

BAD: Json = manifests.of(
    "NodeSet", "bad", controllerRef={"name": "absent"}, replicas=0, slurmd={"env": "A=b"}
)


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("webhooks")
    cluster.create()
    return cluster


def refusal(cluster: Cluster) -> str:
    """What is said to a bad object, which is not stored; empty when it would be."""
    # Of another name: what is stored already is let be.
    probe = {**BAD, "metadata": {"name": "probe"}}
    try:
        cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(probe))
    except LocalError as error:
        return str(error)
    return ""


def scale(site: Site, replicas: int) -> None:
    deployment = ("-n", SYSTEM, f"deployment/{OPERATOR}")
    site.kubectl("scale", *deployment, f"--replicas={replicas}")
    if replicas:
        site.kubectl("rollout", "status", *deployment, "--timeout=90s")
        return
    pods = ("-n", SYSTEM, "pods", "-l", f"app.kubernetes.io/name={OPERATOR}")
    site.kubectl("wait", "--for=delete", *pods, "--timeout=90s")


def test_a_fault_is_refused_in_words_and_nobody_is_locked_out_without_an_operator(
    site: Site, cluster: Cluster
) -> None:
    """Feature rows 62 and 64, slinky 11.6: over TLS of its own making, and never in the way."""
    said = eventually("it is refused", lambda: refusal(cluster), 60)
    assert 'The NodeSet "probe" is invalid: spec.slurmd.env: write a list' in said
    assert "Warning: spec.controllerRef.name: there is no Controller absent" in said
    try:
        scale(site, 0)
        cluster.apply(BAD)
    finally:
        scale(site, 1)

    def told() -> bool:
        found = cluster.get("nodesets", "bad")
        return "spec.slurmd.env" in condition(found, "Ready").get("message", "")

    eventually("what was missed is told", told, 60)
    said = eventually("another one is refused again", lambda: refusal(cluster), 60)
    assert "spec.slurmd.env" in said
    cluster.kubectl("delete", "nodeset", "bad", "--timeout=60s")
