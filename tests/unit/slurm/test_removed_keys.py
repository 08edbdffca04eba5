"""Keys that a PartitionName line had and has no more."""

from __future__ import annotations

import pytest

from penstock.decide.partition.conditions import without
from penstock.slurm.partition.declaration import RemovedKey
from penstock.slurm.partition.removed_keys import removed_keys


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("MaxTime=30 State=UP", "State=DRAIN", [RemovedKey("MaxTime", "30", "UNLIMITED")]),
        ("maxtime=30", "MAXTIME=60", []),
        ("Shared=YES", "OverSubscribe=YES", []),
        ("Shared=YES", "", [RemovedKey("OverSubscribe", "YES", "NO")]),
        ("NewKey=1", "", [RemovedKey("newkey", "1", "")]),
        ("", "MaxTime=30", []),
    ],
)
def test_what_a_line_has_no_more_is_at_slurms_default(
    before: str, after: str, wanted: list[RemovedKey]
) -> None:
    old, new = (f"PartitionName=a Nodes=a {words}\n" for words in (before, after))
    assert list(removed_keys(old, new).get("a", ())) == wanted


def test_a_key_of_a_default_line_has_its_value() -> None:
    head = "PartitionName=DEFAULT MaxTime=60\n"
    old, new = f"{head}PartitionName=a MaxTime=5\n", f"{head}PartitionName=a\n"
    assert removed_keys(old, new) == {"a": (RemovedKey("MaxTime", "5", "60", inherited=True),)}
    assert "PartitionName=DEFAULT" in without("a", removed_keys(old, new)["a"])


@pytest.mark.parametrize("name", ["DEFAULT", "default"])
def test_a_default_line_that_loses_a_key_is_no_partition_that_does(name: str) -> None:
    line = "PartitionName=a MaxTime=5\n"
    old, new = f"PartitionName={name} State=UP\n{line}", f"PartitionName={name}\n{line}"
    assert removed_keys(old, new) == {}


def test_a_partition_that_comes_or_goes_has_lost_no_key() -> None:
    assert removed_keys("PartitionName=a MaxTime=5\n", "PartitionName=b\n") == {}


def test_the_words_name_each_key_with_what_was_and_what_is() -> None:
    told = without("a", [RemovedKey("MaxTime", "30", "UNLIMITED"), RemovedKey("QOS", "x", "")])
    assert told == (
        "Partition a: parameters were removed; "
        "MaxTime=30 (now UNLIMITED), QOS=x: Slurm's default holds again"
    )
