"""Partitions read from slurm.conf, compared and put back."""

from __future__ import annotations

import pytest

from penstock.slurm.partition.declaration import (
    copy_partitions,
    differs_in_partitions,
    live_only,
    partition_changes,
    partition_lines,
)

BASE = "ClusterName=x\nNodeSet=a Feature=a\nPartitionName=a Nodes=a MaxTime=60\n"


def test_default_lines_give_values_to_the_lines_after_them():
    found = partition_lines(
        "PartitionName=a Nodes=x\nPartitionName=DEFAULT MaxTime=5 State=UP\n"
        "PartitionName=default State=DOWN\nPartitionName=b Nodes=y MaxTime=7\n"
    )
    assert found["a"].keys == {"nodes": "x"}
    assert found["b"].keys == {"nodes": "y", "maxtime": "7", "state": "DOWN"}
    assert found.keys() == {"a", "b"}


@pytest.mark.parametrize(
    ("new", "alone"),
    [
        (BASE, True),
        (BASE + "# words\nPartitionName=b Nodes=ALL\n", True),
        (BASE.replace("60", "61"), True),
        (BASE.replace("PartitionName=a Nodes=a MaxTime=60\n", ""), True),
        (BASE + "NodeSet=penstock-b Feature=penstock/b\nPartitionName=b Nodes=penstock-b\n", True),
        (BASE + "NodeSet=b Feature=b\nPartitionName=b Nodes=b\n", False),
        (BASE + "MinJobAge=2\n", False),
    ],
)
def test_only_partitions_and_their_own_node_sets_can_be_changed_without_a_reconfigure(
    new: str, alone: bool
):
    assert live_only(BASE, new) is alone
    assert live_only(new, BASE) is alone


def test_changes_are_reported_by_partition():
    new = "PartitionName=b Nodes=ALL\nPartitionName=c\n"
    found = {one.name: one for one in partition_changes(BASE + "PartitionName=c\n", new)}
    assert found.keys() == {"a", "b"}
    assert found["a"].new is None
    assert found["b"].old is None


def test_a_kept_partition_is_as_it_was_and_the_others_as_they_are_declared():
    new = BASE.replace("60", "banana") + "PartitionName=b Nodes=ALL\n"
    assert copy_partitions(BASE, new, {"a"}) == BASE + "PartitionName=b Nodes=ALL\n"
    assert copy_partitions(BASE, new, {"b"}) == BASE.replace("60", "banana")


def test_a_kept_partition_keeps_its_node_set_or_its_absence():
    mark = "NodeSet=penstock-b Feature=penstock/b\nPartitionName=b Nodes=penstock-b\n"
    assert copy_partitions(BASE, BASE + mark, {"b"}) == BASE
    kept = copy_partitions(BASE + mark, BASE, {"b"})
    assert live_only(BASE + mark, kept)
    assert not partition_changes(BASE + mark, kept)
    assert copy_partitions(kept, BASE, {"b"}) == kept


def test_sets_of_files_are_compared_with_their_includes():
    old = {"slurm.conf": "include own.conf\nKillWait=3\n", "own.conf": BASE, "x": "1"}
    longer = {**old, "own.conf": BASE.replace("60", "61")}
    assert differs_in_partitions(old, old)
    assert differs_in_partitions(old, longer)
    assert not differs_in_partitions(old, {**longer, "x": "2"})
    assert not differs_in_partitions(old, {**longer, "own.conf": f"{BASE}MinJobAge=4\n"})
    assert not differs_in_partitions({}, old)
