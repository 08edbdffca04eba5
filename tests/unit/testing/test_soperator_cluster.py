"""The cluster of soperator that end-to-end tests take over has captured objects alone."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from e2e_kit.soperator_cluster import SoperatorCluster, changed_fields
from penstock.local.node import Node

DIFFERENT = {
    "images": r".*\.image",
    "StatefulSets": r"apiVersion|spec\.(updateStrategy\..*|volumeClaimUpdateStrategy)",
    "procMount": r".*\.securityContext\.procMount",
    "requests": r".*\.(requests|resources)\.(cpu|memory|ephemeral-storage)",
    "volumes": r"spec\.template\.spec\.(volumes.*|containers\.volumeMounts\.name)",
    "settings": r"spec\.custom(Slurm|Cgroup)Config|data\.c(ustom_slurm|group)\.conf",
    "Secrets": r"data\.(ssh_host_.*|slurmdbd\.conf)",
    "exporter": r"spec\.replicas",
}
"""Fields that may differ, after `soperator_cluster.CHANGES`."""


@pytest.fixture
def cluster() -> SoperatorCluster:
    return SoperatorCluster(Node("none"), defaultdict(lambda: "ours"))


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


def test_volumes_differ_in_workers_alone(cluster: SoperatorCluster) -> None:
    found = {
        one["metadata"]["name"]
        for one in cluster.left.objects
        for path in changed_fields(cluster.left.fresh(one), cluster.made(one))
        if "volume" in path and "volumeClaimUpdateStrategy" not in path
    }
    assert found == {"worker"}


def test_a_changed_label_is_seen() -> None:
    one = {"metadata": {"labels": {"a": "b"}}, "spec": {"list": [1, 2]}}
    other = {"metadata": {"labels": {"a": "c"}}, "spec": {"list": [1]}}
    assert list(changed_fields(one, other)) == ["metadata.labels.a", "spec.list"]
