"""One cgroup.conf for pods and for hosts outside Kubernetes: S081."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Pod
from penstock.decide.advice.cgroups import SHARED, external, fetched, other_nodes, shared
from penstock.render.slinky.config.cgroup_conf import CGROUP_CONF
from penstock.slurm.state import Node
from penstock.translate.slinky.worker_set import MARKS

MACHINES = "NodeName=DEFAULT CPUs=4\nNodeName=metal-[0-3] RealMemory=100\n"


def test_machines_beside_pods_and_the_key_that_harms_them_are_named() -> None:
    found = shared(MACHINES, CGROUP_CONF)
    assert found is not None
    assert (found.ok, found.type) == (True, SHARED)
    assert "IgnoreSystemd=yes" in found.message
    assert "metal-[0-3]" in found.message
    assert "DEFAULT" not in found.message


@pytest.mark.parametrize(
    ("extra_conf", "cgroup_conf"),
    [
        ("", CGROUP_CONF),
        ("NodeName=DEFAULT CPUs=4\n", CGROUP_CONF),
        (MACHINES, "CgroupPlugin=cgroup/v2\n"),
        (MACHINES, "IgnoreSystemd=no\n"),
        (MACHINES, "# IgnoreSystemd=yes\n"),
        (MACHINES, "IgnoreSystemdOnFailure=yes\n"),
    ],
)
def test_who_has_nothing_to_fear_is_told_nothing(extra_conf: str, cgroup_conf: str) -> None:
    assert shared(extra_conf, cgroup_conf) is None


def pod(name: str, **spec: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, Pod)


def test_machines_are_the_nodes_that_are_neither_pods_nor_records_of_pods() -> None:
    left = '{"namespace": "slurm", "podName": "burst-1"}'
    nodes = {
        "burst-0": Node("burst-0", frozenset({"IDLE"})),
        "burst-1": Node("burst-1", frozenset({"DOWN"}), comment=left),
        "host": Node("host", frozenset({"IDLE"})),
        "metal-0": Node("metal-0", frozenset({"IDLE"}), comment="rack 7"),
    }
    pods = [pod("burst-0"), pod("worker-0", nodeName="host.example.com", hostNetwork=True)]
    assert other_nodes(MARKS.comment, nodes, pods) == ["metal-0"]


def test_of_a_cgroup_conf_that_is_not_seen_the_key_the_machines_and_the_remedy_are_told() -> None:
    found = external(["metal-0"])
    assert found is not None
    assert (found.ok, found.type, found.reason) == (True, SHARED, "CgroupConfNotSeen")
    for words in ("IgnoreSystemd=yes", "metal-0", "IgnoreSystemdOnFailure=yes", "penstock network"):
        assert words in found.message
    assert external([]) is None


def test_a_file_that_a_worker_fetched_is_told_when_it_harms_machines() -> None:
    assert "IgnoreSystemd=yes" in fetched("IgnoreSystemd=yes\n", ["metal-0"])
    assert fetched("IgnoreSystemd=yes\n", []) == ""
    assert fetched("IgnoreSystemdOnFailure=yes\n", ["metal-0"]) == ""
    assert fetched("", ["metal-0"]) == ""
