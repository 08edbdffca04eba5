"""A PartitionName line is changed word by word, and nothing else of the text is."""

from __future__ import annotations

import msgspec
import pytest

from penstock.simulation.slurm import partitions
from penstock.slurm.partition.conf_line import line_of, with_differences, with_line, without
from penstock.slurm.partition.declaration import Difference, partition_lines
from penstock.slurm.partition.keys import ROWS, canonical
from penstock.slurm.rest.wire import Partition


def edited(text: str, *found: tuple[str, str]) -> str:
    differences = [Difference(key, live, "") for key, live in found]
    new, wrong = with_differences(text, "p", differences)
    assert wrong == []
    return new


@pytest.mark.parametrize(
    ("line", "found", "wanted"),
    [
        ("maxtime = 5 Nodes=ALL", ("MaxTime", "7"), "maxtime = 7 Nodes=ALL"),
        ("Nodes=ALL", ("MaxTime", "7"), "Nodes=ALL MaxTime=7"),
        ("Nodes=ALL # a MaxTime=5", ("MaxTime", "7"), "Nodes=ALL MaxTime=7 # a MaxTime=5"),
        ("MaxTime=5  Hidden=YES", ("Hidden", "NO"), "MaxTime=5"),
        ("MaxTime=5 Hidden=YES", ("MaxTime", "UNLIMITED"), " Hidden=YES"),
        ('TRESBillingWeights="a=1 b" LLN=YES', ("LLN", "NO"), 'TRESBillingWeights="a=1 b"'),
        ("Priority=4", ("PriorityTier", "9"), " PriorityTier=9 PriorityJobFactor=4"),
        ("Shared=FORCE", ("OverSubscribe", "NO"), ""),
        ("OverSubscribe=EXCLUSIVE", ("Exclusive", "NO"), ""),
        ("ExclusiveUser=YES", ("Exclusive", "NODE"), " Exclusive=NODE"),
        ("MaxTime=5 \\\n  Hidden=YES", ("MaxTime", "7"), "MaxTime=7 \\\n  Hidden=YES"),
        ("MaxTime=5 \\\n  Hidden=YES", ("Hidden", "NO"), "MaxTime=5 \\"),
        ("Nodes=a,b", ("Nodes", "compute"), "Nodes=compute"),
    ],
)
def test_one_word_changes(line: str, found: tuple[str, str], wanted: str) -> None:
    before, after = "# x\nKillWait=3\n", "\n\n# y\nPartitionName=q MaxTime=5"
    new = edited(f"{before}PartitionName=p {line}{after}", found)
    line = new.removeprefix(before).removesuffix(after)
    assert line.split() == f"PartitionName=p {wanted}".split()
    assert new.startswith(before)
    assert new.endswith(after)


def test_several_words_change_at_once() -> None:
    text = "PartitionName=p MaxTime=5 State=UP\n"
    new = edited(text, ("State", "DOWN"), ("MaxNodes", "2"), ("MaxTime", "UNLIMITED"))
    assert new == "PartitionName=p State=DOWN MaxNodes=2\n"


def test_of_several_lines_of_a_name_the_last_one_counts() -> None:
    text = "PartitionName=p MaxTime=1\nPartitionName=p MaxTime=2\n"
    assert edited(text, ("MaxTime", "3")) == text.replace("=2", "=3")


def test_what_a_default_line_gives_is_written_out() -> None:
    text = "PartitionName=DEFAULT MaxTime=5\nPartitionName=p\n"
    assert edited(text, ("MaxTime", "UNLIMITED")) == text.replace("=p\n", "=p MaxTime=UNLIMITED\n")


def test_what_a_line_cannot_express_leaves_the_text_and_is_named() -> None:
    text = "PartitionName=DEFAULT DefaultTime=5\nPartitionName=p\n"
    for found in (Difference("DefaultTime", "NONE", "5"), Difference("QOS", 'a"b', "")):
        new, (wrong,) = with_differences(text, "p", [found])
        assert new == text
        assert "slurm.conf cannot express" in wrong
    assert with_differences(text, "other", [])[1] == ["there is no PartitionName=other line"]


def test_a_line_goes_and_comes() -> None:
    text = "A=1\nPartitionName=p\n# end"
    assert without(text, "p") == "A=1\n# end"
    assert with_line(text, "PartitionName=q") == f"{text}\nPartitionName=q\n"
    assert with_line("", "PartitionName=q") == "PartitionName=q\n"


def test_a_live_partition_is_a_line_that_means_the_same() -> None:
    body = {
        "maximums": {"time": {"set": True, "infinite": False, "number": 60}},
        "flags": ["HIDDEN", "LLN"],
        "partition": {"state": ["DRAIN"], "oversubscribe": "FORCE:4"},
        "groups": {"allowed": "physics"},
    }
    live = msgspec.convert(partitions.changed(partitions.new("p"), body), Partition)
    line = line_of(live, "compute")
    keys = dict(partition_lines(line)["p"].keys)
    assert keys.pop("nodes") == "compute"
    has = canonical(keys)
    for row in ROWS:
        if row.live is not None:
            assert has[row.key.lower()] == row.live(live), row.key
