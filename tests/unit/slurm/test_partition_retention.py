"""Which lines a slurm.conf keeps for partitions that are declared no more."""

from __future__ import annotations

import pytest

from penstock.slurm.partition.retention import is_drained, removed_partitions, retained_lines

NOBODY = frozenset[str]()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "State=DRAIN"),
        (" State=UP", "State=DRAIN"),
        (" State=DOWN", "State=INACTIVE"),
        (" State=inactive", "State=INACTIVE"),
    ],
)
def test_a_kept_line_lets_no_new_job_in(before: str, after: str) -> None:
    (line,) = retained_lines(f"PartitionName=p Nodes=ALL{before}\n", "", NOBODY)
    assert line == f"PartitionName=p Nodes=ALL {after}"
    assert is_drained(line, "p")


def test_a_line_that_is_kept_again_is_the_same() -> None:
    old = "PartitionName=DEFAULT MaxTime=5\nPartitionName=p Nodes=a,b Default=YES AllowQos=x\n"
    once = "\n".join(retained_lines(old, "", NOBODY))
    assert "\n".join(retained_lines(once, "", NOBODY)) == once
    assert once == "PartitionName=p MaxTime=5 Nodes=a,b AllowQos=x State=DRAIN"


def test_node_sets_and_nodes_that_it_names_stay_with_it() -> None:
    old = (
        "NodeName=n[1-2] CPUs=4\nNodeName=m1\nNodeSet=gone Feature=gone\n"
        "NodeSet=other Feature=other\nPartitionName=p Nodes=gone,n1\n"
    )
    assert retained_lines(old, "NodeSet=other Feature=other\n", NOBODY) == (
        "NodeSet=gone Feature=gone",
        "NodeName=n[1-2] CPUs=4",
        "PartitionName=p Nodes=gone,n1 State=DRAIN",
    )
    assert retained_lines(old, "NodeSet=gone Feature=x\nNodeName=n[1-9]\n", NOBODY) == (
        "PartitionName=p Nodes=gone,n1 State=DRAIN",
    )


def test_what_is_declared_under_its_name_or_freed_is_not_kept() -> None:
    old = "PartitionName=p Nodes=a\nPartitionName=q Nodes=b\n"
    crosswise = "PartitionName=p Nodes=b\nPartitionName=q Nodes=a\n"
    assert retained_lines(old, crosswise, NOBODY) == ()
    assert retained_lines(old, "", frozenset({"p", "q"})) == ()


def test_names_differ_by_case_as_slurm_has_them() -> None:
    assert removed_partitions("PartitionName=p\n", "PartitionName=P\n") == {"p"}


def test_an_empty_value_is_left_out_of_a_kept_line() -> None:
    assert retained_lines('PartitionName=p Nodes="" MaxTime=5\n', "", NOBODY) == (
        "PartitionName=p MaxTime=5 State=DRAIN",
    )


def test_a_partition_stays_without_a_key_that_cannot_be_written_again() -> None:
    (line,) = retained_lines('PartitionName=p Nodes=ALL Comment=a"b MaxTime=5\n', "", NOBODY)
    assert line == "PartitionName=p Nodes=ALL MaxTime=5 State=DRAIN"


def test_a_partition_whose_name_cannot_be_written_again_breaks_nothing() -> None:
    assert retained_lines('PartitionName="\n', "", NOBODY) == ()
