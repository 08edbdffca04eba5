"""The cluster of soperator that end-to-end tests take over has captured objects alone."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from e2e_kit.soperator_cluster import SoperatorCluster, changed_fields
from penstock.local.node import Node

DIFFERENT = {
    "images": r".*\.image(\.(repository|tag))?",
    "StatefulSets": r"apiVersion|spec\.(updateStrategy\..*|volumeClaimUpdateStrategy)"
    r"|spec\.scaleStrategy",
    "procMount": r".*\.securityContext\.procMount",
    "requests": r".*\.(requests|resources)\.(cpu|memory|ephemeral-storage)",
    "volumes": r"spec\.template\.spec\.(volumes.*|containers\.volumeMounts\.name)",
    "settings": r"spec\.custom(Slurm|Cgroup)Config|data\.c(ustom_slurm|group)\.conf"
    r"|data\.slurm_k8s_extra\.conf\.noedit",
    "Secrets": r"data\.(ssh_host_.*|slurmdbd\.conf|storage.*)",
    "exporter": r"spec\.replicas",
}
"""Fields that may differ, after `soperator_cluster.CHANGES`."""


@pytest.fixture(params=["1.23", "5.0"])
def cluster(request: pytest.FixtureRequest) -> SoperatorCluster:
    return SoperatorCluster(Node("none"), defaultdict(lambda: "ours:1"), request.param)


def test_only_listed_fields_differ_from_the_captured_objects(cluster: SoperatorCluster) -> None:
    """Metadata, and so names, labels and owners, is verbatim."""
    allowed = re.compile("|".join(DIFFERENT.values()))
    found = {
        f"{one['kind']} {one['metadata']['name']}: {path}"
        for one in cluster.left.objects
        for path in changed_fields(cluster.left.fresh(one), cluster.made(one))
        if not allowed.fullmatch(path)
    }
    assert found == set()


def test_volumes_differ_where_two_are_of_one_pvc_alone(cluster: SoperatorCluster) -> None:
    found = {
        one["metadata"]["name"]
        for one in cluster.left.objects
        for path in changed_fields(cluster.left.fresh(one), cluster.made(one))
        if "volume" in path and "volumeClaimUpdateStrategy" not in path
    }
    assert found == {{"1.23": "worker", "5.0": "soperator-login"}[cluster.version]}


def test_a_changed_label_is_seen() -> None:
    one = {"metadata": {"labels": {"a": "b"}}, "spec": {"list": [1, 2]}}
    other = {"metadata": {"labels": {"a": "c"}}, "spec": {"list": [1]}}
    assert list(changed_fields(one, other)) == ["metadata.labels.a", "spec.list"]
