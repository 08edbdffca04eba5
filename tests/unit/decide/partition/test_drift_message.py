"""What is told of changed partitions, and how a Partition declares what Slurm has."""

from __future__ import annotations

import msgspec

from penstock.api.penstock.partition import PartitionSpec
from penstock.decide.partition.drift_message import describe_drift
from penstock.slurm.partition.declaration import Difference
from penstock.translate.penstock.adopted_spec import into_partition

TIME = (Difference("MaxTime", "5", "6"),)
MADE = (Difference("PartitionName", "p", ""),)
GONE = (Difference("PartitionName", "", "p"),)


def test_partitions_that_come_and_go_by_hand_are_named() -> None:
    assert "made in Slurm" in describe_drift("p", MADE)
    assert "deleted in Slurm" in describe_drift("p", GONE)
    assert describe_drift("p", TIME) == "partition p was changed in Slurm: MaxTime is 5, declared 6"


def test_what_a_partition_adopts_is_a_spec() -> None:
    found = into_partition(
        {
            "p": (
                Difference("MaxTime", "UNLIMITED", "5"),
                Difference("MaxNodes", "3", "UNLIMITED"),
                Difference("Hidden", "YES", "NO"),
                Difference("AllowGroups", "a,b", "ALL"),
                Difference("DefMemPerCPU", "UNLIMITED", "100"),
                Difference("DefaultTime", "NONE", "5"),
                Difference("Nodes", "n[0-1]", "n0"),
                Difference("Exclusive", "NODE", "NO"),
            )
        }
    )
    spec = msgspec.convert({"controllerRef": {"name": "c"}, **found.patch}, PartitionSpec)
    assert found.left == {}
    assert (spec.max_time, spec.max_nodes, spec.hidden) == ("UNLIMITED", 3, True)
    assert (spec.allow_groups, spec.def_mem_per_cpu) == (("a", "b"), None)
    assert (spec.default_time, spec.nodes, spec.exclusive) == (None, ("n[0-1]",), "NODE")


def test_a_partition_does_not_adopt_that_it_was_deleted() -> None:
    found = into_partition({"p": GONE})
    assert found.patch == {}
    assert "delete the object" in found.left["p"]
