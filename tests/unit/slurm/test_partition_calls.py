"""From a changed line to the call that slurmctld gets, and what it then shows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.simulation.slurm import partitions
from penstock.slurm.partition.comparison import default_partition, differences, expected_nodes
from penstock.slurm.partition.declaration import (
    Change,
    Difference,
    PartitionLine,
    partition_changes,
    partition_lines,
)
from penstock.slurm.partition.keys import ROWS, canonical
from penstock.slurm.partition.update import ByFile, Delete, Update, call
from penstock.slurm.rest.wire import Partition
from penstock.slurm.state import Node

# A value of each key that is not its default, as slurm.conf has it.
VALUES = {
    "AllocNodes": "login-[0-1]",
    "AllowAccounts": "B,a",
    "AllowGroups": "users,Staff",
    "AllowQos": "normal",
    "Alternate": "other",
    "CpuBind": "cores",
    "DefMemPerCPU": "100",
    "DefMemPerNode": "200",
    "Default": "yes",
    "DefaultTime": "1:30:00",
    "DenyAccounts": "c",
    "DenyQos": "low",
    "DisableRootJobs": "YES",
    "Exclusive": "user",
    "GraceTime": "30",
    "Hidden": "YES",
    "LLN": "YES",
    "MaxCPUsPerNode": "4",
    "MaxCPUsPerSocket": "2",
    "MaxMemPerCPU": "100",
    "MaxMemPerNode": "200",
    "MaxNodes": "2",
    "MaxTime": "7-00:00:00",
    "MinNodes": "1",
    "OverSubscribe": "FORCE",
    "OverTimeLimit": "5",
    "PowerDownOnIdle": "YES",
    "PreemptMode": "OFF",
    "PriorityJobFactor": "5",
    "PriorityTier": "7",
    "QOS": "Normal",
    "ReqResv": "YES",
    "RootOnly": "YES",
    "State": "DRAIN",
    "Topology": "tree",
    "TRESBillingWeights": "CPU=1.0,Mem=0.25G",
}


def of(**keys: str) -> PartitionLine:
    return PartitionLine("p", {key.lower(): value for key, value in keys.items()})


def body(old: PartitionLine | None, new: PartitionLine) -> dict[str, Any]:
    found = call(Change("p", old, new), {})
    assert isinstance(found, Update)
    return found.body


def shown(record: dict[str, Any]) -> Partition:
    return msgspec.convert(record, Partition)


def test_every_key_that_slurmrestd_can_set_has_a_value_here():
    assert {row.key for row in ROWS if row.body is not None} == VALUES.keys() | {"JobDefaults"}


@pytest.mark.parametrize("key", VALUES)
def test_a_key_that_is_set_is_shown_and_can_be_taken_back(key: str):
    new = of(**{key: VALUES[key]})
    created = partitions.changed(partitions.new("p"), body(None, of()))
    assert differences(of(), shown(created)) == ()
    record = partitions.changed(created, body(of(), new))
    assert differences(new, shown(record)) == ()
    assert [one.key for one in differences(of(), shown(record))] == [key]
    row = next(row for row in ROWS if row.key == key)
    back = call(Change("p", new, of()), {})
    if row.undo:
        assert isinstance(back, Update)
        assert differences(of(), shown(partitions.changed(record, back.body))) == ()
    else:
        assert back == ByFile("p", f"slurmrestd cannot take {key} back")


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        ("MaxTime", "60", "1:00:00"),
        ("MaxTime", "1-0", "24:00:00"),
        ("MaxTime", "1:30", "2"),
        ("MaxTime", "INFINITE", "UNLIMITED"),
        ("MaxNodes", "INFINITE", "UNLIMITED"),
        ("OverSubscribe", "YES", "YES:4"),
        ("AllowAccounts", "b,A", "a,b"),
        ("AllocNodes", "n0,n1", "n[0-1]"),
        ("Default", "y", "YES"),
        ("CpuBind", "thread", "threads"),
    ],
)
def test_two_spellings_of_one_value_are_no_change(key: str, one: str, other: str):
    assert canonical({key.lower(): one}) == canonical({key.lower(): other})


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"Priority": "3"}, {"PriorityJobFactor": "3", "PriorityTier": "3"}),
        ({"Shared": "NO"}, {"OverSubscribe": "NO"}),
        ({"ExclusiveUser": "YES"}, {"Exclusive": "USER"}),
        ({"ExclusiveTopo": "YES"}, {"Exclusive": "TOPO"}),
        ({"ExclusiveUser": "NO"}, {}),
        ({"OverSubscribe": "EXCLUSIVE"}, {"Exclusive": "NODE"}),
    ],
)
def test_older_spellings_mean_what_slurmctld_shows(older: dict[str, str], newer: dict[str, str]):
    assert canonical(dict(of(**older).keys)) == canonical(dict(of(**newer).keys))


def test_of_memory_for_each_cpu_and_each_node_one_is_sent():
    to_node = body(of(DefMemPerCPU="100"), of(DefMemPerNode="50"))
    assert list(to_node["defaults"]) == ["partition_memory_per_node"]
    to_cpu = body(of(DefMemPerNode="50"), of(DefMemPerCPU="100"))
    assert list(to_cpu["defaults"]) == ["partition_memory_per_cpu"]


def test_only_what_changed_is_sent():
    assert body(of(MaxTime="5", State="UP"), of(MaxTime="6", State="up")) == {
        "name": "p",
        "maximums": {"time": {"set": True, "infinite": False, "number": 6}},
    }


@pytest.mark.parametrize(
    "new",
    [
        {"SuspendTime": "5"},
        {"SelectTypeParameters": "CR_Core"},
        {"MaxTime": "banana"},
        {"PreemptMode": "SUSPEND,GANG"},
        {"NewKey": "1"},
    ],
)
def test_what_slurmrestd_cannot_set_or_we_cannot_read_goes_by_the_file(new: dict[str, str]):
    assert isinstance(call(Change("p", of(), of(**new)), {}), ByFile)


def test_a_partition_that_goes_is_deleted():
    assert call(Change("p", of(), None), {}) == Delete("p")


def test_defaults_for_gpus_are_sent_together():
    found = body(of(), of(DefCPUPerGPU="2", DefMemPerGPU="100"))
    assert found["defaults"] == {"job": "DefCpuPerGPU=2,DefMemPerGPU=100"}


def test_nodes_that_belong_one_by_one_are_sent_by_name():
    new = of(Nodes="compute,penstock-p")
    found = call(Change("p", None, new), {"penstock-p": ["gpu-1", "gpu-0"]})
    assert isinstance(found, Update)
    assert found.body["nodes"] == {"configured": "compute,gpu-[0-1]"}


def test_nodes_are_those_of_sets_features_and_names():
    nodes = {name: Node(name, features=("c",)) for name in ("c-0", "c-1")} | {"g-0": Node("g-0")}
    text = (
        "NodeSet=c Feature=c\nNodeSet=m Feature=m\nPartitionName=a Nodes=ALL\n"
        "PartitionName=b Nodes=c,g-0\nPartitionName=d Nodes=m\nPartitionName=e\n"
    )
    members = {"m": frozenset({"g-0"})}
    found = {name: expected_nodes(text, name, nodes, members) for name in partition_lines(text)}
    assert found == {
        "a": nodes.keys(),
        "b": nodes.keys(),
        "d": {"g-0"},
        "e": frozenset(),
    }
    assert expected_nodes(text, "x", nodes, members) is None


def test_of_several_default_partitions_the_last_one_counts():
    text = "PartitionName=a Default=YES\nPartitionName=b Default=yes\nPartitionName=c\n"
    assert default_partition(text) == "b"
    assert default_partition("PartitionName=c\n") is None


def test_a_line_that_is_written_otherwise_and_means_the_same_sends_nothing_new():
    (change,) = partition_changes(
        "PartitionName=p MaxTime=60\n", "PartitionName=p MaxTime=1:00:00\n"
    )
    assert call(change, {}) == Update("p", {"name": "p"})


def test_what_drifted_since_is_sent_again_with_a_change() -> None:
    change = Change("p", of(MaxTime="60", State="UP"), of(MaxTime="60", MaxNodes="2", State="UP"))
    drifted = (Difference("MaxTime", "7", "60"), Difference("Hidden", "YES", "NO"))
    asked = call(change, {}, drifted)
    assert isinstance(asked, Update)
    assert asked.body["maximums"]["time"]["number"] == 60
    assert asked.body["maximums"]["nodes"]["number"] == 2
    assert asked.body["flags"] == ["HIDDEN_CLEAR"]
    assert "partition" not in asked.body


def test_nodes_that_are_no_host_list_are_left_to_slurmctlds_words() -> None:
    found = call(Change("p", None, of(nodes="a[1")), {})
    assert isinstance(found, ByFile)
    assert "'[' is never closed" in found.why
