"""What slurmctld has of partitions is declared in words of slurm.conf, and nothing else changes."""

from __future__ import annotations

import msgspec

from penstock.simulation.slurm import partitions
from penstock.slurm.partition.adoption import into_extra_conf, into_nodeset
from penstock.slurm.partition.declaration import Difference, partition_lines
from penstock.slurm.rest.wire import Partition

TIME = (Difference("MaxTime", "5", "6"),)
MADE = (Difference("PartitionName", "p", ""),)
GONE = (Difference("PartitionName", "", "p"),)
SETS = {
    "ALL": frozenset({"c-0", "c-1", "g-0"}),
    "compute": frozenset({"c-0", "c-1"}),
    "gpu": frozenset({"g-0"}),
}


def live(nodes: str = "c-[0-1]", sets: str = "", /, **body: object) -> Partition:
    record = partitions.changed(partitions.new("p"), dict(body))
    names: list[str] = []
    record = partitions.placed(record, nodes, names, [sets] if sets else [])
    record["nodes"]["configured"] = nodes
    return msgspec.convert(record, Partition)


def test_a_nodeset_adopts_words_of_its_partition() -> None:
    found = into_nodeset("Default=YES MaxTime=6", {"p": TIME})
    assert found.patch == {"partition": {"config": "Default=YES MaxTime=5"}}
    taken_away = (Difference("MaxTime", "UNLIMITED", "6"),)
    assert into_nodeset("MaxTime=6", {"p": taken_away}).patch == {"partition": {"config": None}}
    assert into_nodeset("", {"p": GONE}).patch == {"partition": {"enabled": False}}
    nodes = into_nodeset("", {"p": (Difference("Nodes", "c-0", "c-[0-1]"),)})
    assert nodes.patch == {}
    assert "those of the NodeSet" in nodes.left["p"]


TEXT = """# Ours.
PartitionName=p   Nodes=ALL MaxTime=6  # long
PartitionName=q Nodes=ALL
KillWait=3"""


def test_a_controller_adopts_one_line_and_leaves_the_rest_byte_for_byte() -> None:
    found = into_extra_conf(TEXT, {"p": TIME}, {"p": live()}, SETS)
    assert found.left == {}
    assert found.patch == {"extraConf": TEXT.replace("MaxTime=6", "MaxTime=5")}


def test_a_controller_adopts_that_a_partition_was_deleted() -> None:
    found = into_extra_conf(TEXT, {"q": (Difference("PartitionName", "", "q"),)}, {}, SETS)
    assert found.patch == {"extraConf": TEXT.replace("PartitionName=q Nodes=ALL\n", "")}


def test_a_partition_that_was_made_by_hand_becomes_one_more_line() -> None:
    record = live("c-[0-1],g-0", partition={"state": ["DOWN"]}, grace_time=7)
    found = into_extra_conf(TEXT, {"p2": MADE}, {"p2": record}, SETS)
    text: str = found.patch["extraConf"]
    assert text.startswith(f"{TEXT}\n")
    last = partition_lines(text)["p"]
    assert (last.keys["nodes"], last.keys["state"], last.keys["gracetime"]) == (
        "compute,gpu",
        "DOWN",
        "7",
    )


def test_nodes_are_written_as_the_node_sets_that_slurm_was_given() -> None:
    for nodes, sets, wanted in (
        ("c-[0-1],g-0", "ALL", "ALL"),
        ("c-[0-1]", "compute", "compute"),
        ("c-[0-1]", "", "compute"),
    ):
        found = into_extra_conf("", {"p": MADE}, {"p": live(nodes, sets)}, SETS)
        assert f"Nodes={wanted}" in found.patch["extraConf"]


def test_nodes_that_are_named_one_by_one_are_not_written_to_a_line() -> None:
    for differences in (MADE, (Difference("Nodes", "c-0", "c-[0-1]"),)):
        # Also where slurmctld still tells of the set that they were taken from.
        for record in (live("c-0"), live("c-0", "compute")):
            found = into_extra_conf(TEXT, {"p": differences}, {"p": record}, SETS)
            assert found.patch == {}
            assert "names nodes one by one" in found.left["p"]
