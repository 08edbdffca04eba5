"""Tables of the command line as JSON, which programs read: their fields have fixed names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.base.table import aligned
from penstock.cli import images, local, network
from penstock.cli.main import app
from penstock.decide.cluster.network import Place, Way
from penstock.local import clusters
from penstock.local.images import ImageArchive
from penstock.local.node import NodeStatus, Status
from penstock.local.process import Process
from penstock.local.starter import Starter


def found(*arguments: str) -> Any:
    done = CliRunner().invoke(app, [*arguments, "-o", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(autouse=True)
def anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if root asked, on Linux."""
    monkeypatch.setattr(local, "require_root_linux", lambda: None)


def test_clusters_are_listed_with_who_started_them(monkeypatch: pytest.MonkeyPatch) -> None:
    by = Starter(7, 1, "make demo", "/somewhere", 5.5)
    rows = [
        clusters.Listed("penstock", "ready", 2, 42, Path("/state/penstock"), by),
        clusters.Listed("old", "dead", 1, None, Path("/state/old"), None),
    ]
    monkeypatch.setattr(clusters, "listed", lambda: rows)
    first, second = found("local", "list")
    assert first["startedBy"] == {
        "command": "make demo",
        "pid": 7,
        "running": by.process.alive,
        "since": 5.5,
        "folder": "/somewhere",
    }
    assert second == {
        "name": "old",
        "state": "dead",
        "nodes": 1,
        "pid": None,
        "stateFolder": "/state/old",
        "startedBy": None,
    }


def test_no_cluster_is_an_empty_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "listed", list)
    monkeypatch.setattr(local, "all_nodes", list)
    assert found("local", "list") == []
    assert found("local", "status") == []


def test_a_clusters_processes_are_listed_for_each_node(monkeypatch: pytest.MonkeyPatch) -> None:
    class OneNode:
        def __init__(self, name: str = "") -> None:
            self.name = name

        def status(self) -> Status:
            return Status("one", "ready", None, "https://10.0.0.1", {"etcd": Process(9, 1)})

        def nodes(self) -> list[NodeStatus]:
            return [NodeStatus("worker-1", "running", "10.0.0.2", {"kubelet": Process(11, 1)})]

    node = {
        "name": "worker-1",
        "state": "running",
        "address": "10.0.0.2",
        "components": {"kubelet": 11},
    }
    monkeypatch.setattr(local, "all_nodes", lambda: [OneNode()])
    monkeypatch.setattr(local, "Node", OneNode)
    assert found("local", "status") == [
        {
            "name": "one",
            "state": "ready",
            "size": None,
            "server": "https://10.0.0.1",
            "components": {"etcd": 9},
            "nodes": [node],
        }
    ]
    assert found("local", "node", "list") == [node]


def test_images_are_listed_with_their_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "images.tar"
    file.write_bytes(b"12345")
    image = ImageArchive("slurmd", "here/slurmd:26.05", "here/slurmd:26.05-0af1", file)
    monkeypatch.setattr(images.images, "built", lambda: [image])
    assert found("images", "list") == [
        {
            "role": "slurmd",
            "image": "here/slurmd:26.05-0af1",
            "reference": "here/slurmd:26.05",
            "release": "26.05",
            "file": str(file),
            "bytes": 5,
        }
    ]
    names = found("images", "list", "--prefix", "registry.example.com/slurm")
    assert all(one.startswith("registry.example.com/slurm/") for one in names)


def test_ways_of_the_network_name_both_ends_and_a_closed_one_ends_with_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = Place("slurmd", "n-0", "n-0", "slurmd", host="10.0.0.7", port=6818)
    way = Way(Place("slurmctld", "", "slurm-0", "slurmctld"), worker, "NO: refused")

    def read(kubectl: network.Kubectl) -> list[network.Found]:
        assert kubectl.options == ()
        return [network.Found("Controller", "slurm", [way], "a remark")]

    monkeypatch.setattr(network, "read_clusters", read)
    done = CliRunner().invoke(app, ["network", "-o", "json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout) == [
        {
            "kind": "Controller",
            "name": "slurm",
            "ways": [
                {
                    "from": {"role": "slurmctld", "name": "", "pod": "slurm-0"},
                    "to": {"role": "slurmd", "name": "n-0", "pod": "n-0"},
                    "address": "10.0.0.7:6818",
                    "closed": True,
                    "result": "NO: refused",
                }
            ],
            "remark": "a remark",
        }
    ]


def test_columns_are_as_wide_as_their_longest_cell() -> None:
    assert aligned([("A", "B"), ("longer", "")]) == ["A       B", "longer"]
