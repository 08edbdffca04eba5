"""Changes that are made in Slurm itself."""

from __future__ import annotations

import msgspec

from penstock.api.penstock.partition import PartitionSpec
from penstock.decide.partition_drift import CONFIRM_S, adopted, check, told, watch
from penstock.slurm.partition import Difference

TIME = (Difference("MaxTime", "5", "6"),)


def test_a_difference_counts_when_it_is_there_in_two_answers():
    first = watch({}, {"p": TIME}, 10.0)
    assert not first["p"].confirmed
    other = watch(first, {"p": (Difference("MaxTime", "7", "6"),)}, 10.0 + CONFIRM_S)
    assert not other["p"].confirmed
    assert watch(first, {"p": TIME}, 10.0 + CONFIRM_S)["p"].confirmed
    assert watch(first, {}, 11.0) == {}


def test_a_drift_is_told_and_ready_does_not_depend_on_it():
    (found,) = check({"p": TIME}, ())
    assert (found.ok, found.type) == (True, "Drifted")
    assert "MaxTime is 5, declared 6" in found.message
    assert check({}, ()) == []
    (gone,) = check({}, (), always=True)
    assert gone.negative


def test_partitions_that_come_and_go_by_hand_are_named():
    assert "made in Slurm" in told("p", (Difference("PartitionName", "p", ""),))
    assert "deleted in Slurm" in told("p", (Difference("PartitionName", "", "p"),))


def test_what_is_adopted_is_a_spec():
    patch = adopted(
        (
            Difference("MaxTime", "UNLIMITED", "5"),
            Difference("MaxNodes", "3", "UNLIMITED"),
            Difference("Hidden", "YES", "NO"),
            Difference("AllowGroups", "a,b", "ALL"),
            Difference("DefMemPerCPU", "UNLIMITED", "100"),
            Difference("DefaultTime", "NONE", "5"),
            Difference("Nodes", "n[0-1]", "n0"),
            Difference("Exclusive", "NODE", "NO"),
        )
    )
    spec = msgspec.convert({"controllerRef": {"name": "c"}, **patch}, PartitionSpec)
    assert (spec.max_time, spec.max_nodes, spec.hidden) == ("UNLIMITED", 3, True)
    assert (spec.allow_groups, spec.def_mem_per_cpu) == (("a", "b"), None)
    assert (spec.default_time, spec.nodes, spec.exclusive) == (None, ("n[0-1]",), "NODE")
    assert adopted((Difference("PartitionName", "", "p"),)) == {}
