"""Partitions as lines of slurm.conf, and which nodes belong to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from penstock.api.penstock.partition import KEYS, Partition, PartitionKeys
from penstock.render.config import partition as partitions
from penstock.render.config.partition import Worker
from penstock.render.slinky.config.slurm_conf import slurm_conf
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.conf.document import Document
from penstock.slurm.partition.keys import canonical
from penstock.slurm.state import Node
from penstock.translate.penstock.partition_spec import partition_spec

NODES = {
    **{f"compute-{n}": Node(f"compute-{n}", features=("compute",)) for n in range(4)},
    "gpu-0": Node("gpu-0", features=("gpu", "fast")),
}
WORKERS = {
    "compute-0": Worker({"team": "a"}, {"zone": "x"}),
    "compute-1": Worker({"team": "b"}, {"zone": "x"}),
    "gpu-0": Worker({"team": "a"}, {"zone": "y"}),
}


def partition(named: str = "p", /, since: str = "2026-01-01T00:00:00Z", **spec: Any) -> Partition:
    meta = {"name": named, "creationTimestamp": since}
    whole = {"metadata": meta, "spec": {"controllerRef": {"name": "slurm"}, **spec}}
    return msgspec.convert(whole, Partition)


def cluster(load: Any, *found: Partition, **specs: Any) -> ClusterInputs:
    return replace(load("minimal", **specs).cluster, partitions=found)


def test_without_a_partition_the_file_is_as_it_was(load: Any):
    assert slurm_conf(cluster(load)) == slurm_conf(load("minimal").cluster)


def test_lines_come_sorted_after_those_of_nodesets(load: Any):
    found = cluster(
        load,
        partition("b", nodeSets=["compute"], maxTime="1-0", default=False, allowGroups=["x", "y"]),
        partition("a", nodes=["compute-1"], extra={"NewKey": "two words"}),
        partition("c", name="Third"),
    )
    assert slurm_conf(found).endswith(
        "NodeSet=compute Feature=compute\n"
        "PartitionName=compute Nodes=compute Default=YES MaxTime=7-00:00:00 State=UP\n"
        "PartitionName=Third\n"
        "NodeSet=penstock-a Feature=penstock/a\n"
        'PartitionName=a Nodes=penstock-a NewKey="two words"\n'
        "PartitionName=b Nodes=compute AllowGroups=x,y Default=NO MaxTime=1-0\n"
    )


def test_every_field_is_a_key_that_is_written_and_read(load: Any):
    assert KEYS.keys() == set(PartitionKeys.__struct_fields__)
    values: dict[str, Any] = {
        "default": True,
        "max_nodes": 4,
        "max_time": "1:0:0",
        "over_subscribe": "FORCE:2",
    }
    names = {"over_subscribe": "overSubscribe", "max_nodes": "maxNodes", "max_time": "maxTime"}
    spec = {names.get(name, name): value for name, value in values.items()}
    line = partitions.lines(cluster(load, partition(**spec)).model)[0]
    record = Document.parse(line).record("PartitionName", "p")
    assert record is not None
    assert canonical({s.key.lower(): s.value for s in record.settings})["maxtime"] == "60"
    for name in values:
        assert record.get(KEYS[name]) is not None


@pytest.mark.parametrize(
    ("spec", "line", "members"),
    [
        ({"nodes": ["ALL"]}, " Nodes=ALL", set[str]()),
        ({"nodes": ["compute"]}, " Nodes=compute", set[str]()),
        ({"nodes": ["compute", "gpu-0"]}, " Nodes=compute,penstock-p", {"gpu-0"}),
        ({"nodes": ["compute-[1-2]", "+gpu-0"]}, " Nodes=penstock-p", {"1", "2", "gpu-0"}),
        ({"nodes": ["compute-[0-9]"]}, " Nodes=penstock-p", {"0", "1", "2", "3"}),
        ({"nodes": ["-compute-[1-2]", "compute"]}, " Nodes=penstock-p", {"0", "3"}),
        ({"nodes": ["ALL", "-compute-[0-2]"]}, " Nodes=penstock-p", {"3", "gpu-0"}),
        ({"nodes": ["compute-0", "-compute-0", "+compute-0"]}, " Nodes=penstock-p", {"0"}),
        ({"nodeSets": ["compute"], "nodes": ["-compute-0"]}, " Nodes=penstock-p", {"1", "2", "3"}),
        ({"nodeSets": ["compute", "gone"]}, " Nodes=compute", set[str]()),
        ({"nodeSets": ["gone"]}, "", set[str]()),
        ({"nodes": ["mine"]}, " Nodes=mine", set[str]()),
        ({"selector": {"features": ["fast"]}}, " Nodes=penstock-p", {"gpu-0"}),
        (
            {"selector": {"podLabels": {"matchLabels": {"team": "a"}}}},
            " Nodes=penstock-p",
            {"0", "gpu-0"},
        ),
        (
            {
                "selector": {
                    "podLabels": {"matchLabels": {"team": "a"}},
                    "nodeLabels": {
                        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["y"]}]
                    },
                }
            },
            " Nodes=penstock-p",
            {"gpu-0"},
        ),
        (
            {"selector": {"features": ["compute"]}, "nodes": ["-compute-1"]},
            " Nodes=penstock-p",
            {"0", "2", "3"},
        ),
    ],
)
def test_nodes_are_named_as_sets_or_belong_one_by_one(
    spec: dict[str, Any], line: str, members: set[str], load: Any
):
    found = partition(**spec)
    at = cluster(load, found, controller={"extraConf": "NodeSet=mine Nodes=other-1\n"})
    assert partitions.lines(at.model)[-1] == f"PartitionName=p{line}"
    names = {f"compute-{one}" if one.isdigit() else one for one in members}
    assert partitions.members(at.model, partition_spec(found), NODES, WORKERS) == names


@pytest.mark.parametrize(
    ("operator", "values", "matches"),
    [
        ("In", ["a"], {"compute-0", "gpu-0"}),
        ("NotIn", ["a"], {"compute-1", "compute-2", "compute-3"}),
        ("Exists", [], {"compute-0", "compute-1", "gpu-0"}),
        ("DoesNotExist", [], {"compute-2", "compute-3"}),
    ],
)
def test_label_requirements_are_those_of_kubernetes(
    operator: str, values: list[str], matches: set[str], load: Any
):
    one = {"key": "team", "operator": operator, "values": values}
    found = partition(selector={"podLabels": {"matchExpressions": [one]}})
    assert (
        partitions.members(cluster(load, found).model, partition_spec(found), NODES, WORKERS)
        == matches
    )


def test_a_name_that_is_taken_stays_with_who_had_it(load: Any):
    old, new = partition("b"), partition("a", since="2026-01-02T00:00:00Z", name="b")
    ours, theirs = partition("compute"), partition("raw")
    at = cluster(
        load, new, old, ours, theirs, controller={"extraConf": "PartitionName=raw Nodes=ALL\n"}
    )
    assert partitions.served(at.model) == (partition_spec(old),)
    assert partitions.conflict(at.model, partition_spec(old)) == ""
    assert partitions.conflict(at.model, partition_spec(new)) == "Partition b"
    assert partitions.conflict(at.model, partition_spec(ours)) == "NodeSet compute"
    assert partitions.conflict(at.model, partition_spec(theirs)) == "extraConf of the Controller"


def test_a_partition_that_was_rejected_stays_as_the_file_has_it(load: Any):
    before = slurm_conf(cluster(load, partition(maxTime=5)))
    at = cluster(load, partition(maxTime=6), partition("q"))
    kept = replace(at, rejected_partitions=frozenset({"p", "r"}), slurm_conf=before)
    assert "PartitionName=p MaxTime=5\n" in slurm_conf(kept)
    assert "PartitionName=q\n" in slurm_conf(kept)


def test_a_partition_that_is_wrong_in_itself_is_not_rendered(load: Any):
    wrong = partition(nodes=["compute-[3-1]"])
    at = cluster(load, wrong, partition("q"))
    assert partitions.invalid(at.model) == {"p"}
    assert [one.name for one in partitions.served(at.model)] == ["q"]
