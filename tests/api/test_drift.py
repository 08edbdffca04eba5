"""What is changed in Slurm itself: told, put back or adopted, object by object."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.cluster.marks import DRIFT
from penstock.api.kubernetes.meta import Json
from support.operator_kit import Lab, Node, Running, lab
from support.partitions import (
    CONTROLLER,
    conf,
    drifted,
    effective,
    events,
    events_of,
    live,
    partition,
    poke,
    reads,
    start,
)

pytestmark = pytest.mark.api

LINES = "MinJobAge=2\n# Ours.\nPartitionName=raw   Nodes=ALL MaxTime=5  # short\nKillWait=9\n"


def by_hand(lab_: Lab, name: str, minutes: int = 7, **body: Any) -> None:
    """`scontrol update partition`, or `create`."""
    time = {"set": True, "infinite": False, "number": minutes}
    lab_.slurm.update_partition({"name": name, "maximums": {"time": time}, **body})


def minutes(lab_: Lab, name: str) -> int:
    return live(lab_, name)["maximums"]["time"]["number"]


def node_by_hand(lab_: Lab, name: str, **values: Any) -> None:
    """`scontrol update node`."""
    if "weight" in values:
        values["weight"] = {"set": True, "number": values["weight"]}
    lab_.slurm.update_node(name, [], values)


async def choose(lab_: Lab, kind: str, name: str, word: str | None) -> None:
    await lab_.patch(kind, name, {"metadata": {"annotations": {DRIFT: word}}})


async def undrifted(lab_: Lab, kind: str, name: str) -> None:
    """Wait until the condition says that nothing differs."""
    await lab_.until(
        lambda: (
            (found := lab_.condition(kind, name, "Drifted")) is not None and found.status == "False"
        )
    )


def spec(lab_: Lab, kind: str, name: str) -> Json:
    found = lab_.get(kind, name)
    assert found is not None
    return found["spec"]


async def raw(lab_: Lab, running: Running, text: str = LINES) -> None:
    """A cluster whose Controller declares a partition."""
    await start(lab_)
    await lab_.apply({**CONTROLLER, "spec": {"extraConf": text}})
    await lab_.until(lambda: "PartitionName=raw" in conf(lab_))
    await effective(lab_)
    await lab_.until(lambda: "raw" in lab_.slurm.partitions)
    poke(lab_, running)


async def test_a_change_in_slurm_itself_is_reported_with_field_and_both_values(
    api_node: Node,
) -> None:
    async with lab(api_node) as lab_:
        async with lab_.operator() as running:
            await start(lab_)
            await lab_.apply(partition(nodeSets=["compute"], maxTime=60))
            await lab_.until(lambda: lab_.ready("Partition", "part"))
            await effective(lab_)
            for name in ("part", "compute", "byhand"):
                by_hand(lab_, name)
            poke(lab_, running)
            assert "MaxTime is 7, declared 60" in await drifted(lab_, "Partition", "part")
            assert "MaxTime is 7, declared UNLIMITED" in await drifted(lab_, "NodeSet", "compute")
            assert "byhand was made in Slurm" in await drifted(lab_, "Controller", "slurm")
            await events_of(lab_, running, "PartitionDrifted", 3)
            assert lab_.ready("Partition", "part")
            assert lab_.ready("NodeSet", "compute")
            assert minutes(lab_, "part") == 7
            await lab_.calm()
        # A process that starts finds all told.
        async with lab_.operator() as second:
            await lab_.rest.called(len(lab_.rest.calls) + 6)
            poke(lab_, second)
            await lab_.calm(5)
            assert second.writes == []
            lab_.slurm.delete_partition("byhand")
            reads(lab_)
            poke(lab_, second)
            await undrifted(lab_, "Partition", "part")
            await undrifted(lab_, "NodeSet", "compute")
            await undrifted(lab_, "Controller", "slurm")


async def test_a_partition_is_put_back_or_adopted_as_asked(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await start(lab_)
        await lab_.apply(partition("back", nodeSets=["compute"], drift="Revert", state="UP"))
        await lab_.apply(partition("take", nodeSets=["compute"], drift="Adopt", hidden=True))
        for name in ("back", "take"):
            await lab_.until(lambda name=name: lab_.ready("Partition", name))
        await effective(lab_)
        for name in ("back", "take"):
            body: dict[str, Any] = {"name": name, "partition": {"state": ["DOWN"]}}
            lab_.slurm.update_partition({**body, "flags": ["HIDDEN_CLEAR", "LLN"]})
        poke(lab_, running)
        await lab_.until(lambda: live(lab_, "back")["partition"]["state"] == ["UP"])
        assert live(lab_, "back")["flags"] == []
        await lab_.until(lambda: "Hidden=NO LLN=YES State=DOWN\n" in conf(lab_))
        found = spec(lab_, "Partition", "take")
        assert (found["state"], found["hidden"], found["lln"]) == ("DOWN", False, True)
        assert found["nodeSets"] == ["compute"]
        assert live(lab_, "take")["partition"]["state"] == ["DOWN"]
        await undrifted(lab_, "Partition", "take")
        await undrifted(lab_, "Partition", "back")
        lab_.slurm.delete_partition("back")
        poke(lab_, running)
        await lab_.until(lambda: "back" in lab_.slurm.partitions)


async def test_a_nodeset_puts_its_partition_back_or_declares_what_slurm_has(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await start(lab_)
        await choose(lab_, "NodeSet", "compute", "Revert")
        config = {"enabled": True, "config": "Default=YES MaxTime=60"}
        await lab_.patch("NodeSet", "compute", {"spec": {"partition": config}})
        await lab_.until(lambda: "MaxTime=60" in conf(lab_))
        await effective(lab_)
        by_hand(lab_, "compute")
        poke(lab_, running)
        await lab_.until(lambda: minutes(lab_, "compute") == 60)
        await undrifted(lab_, "NodeSet", "compute")
        await events_of(lab_, running, "PartitionReverted")
        await choose(lab_, "NodeSet", "compute", "Adopt")
        by_hand(lab_, "compute")
        poke(lab_, running)
        await lab_.until(lambda: "Default=YES MaxTime=7\n" in conf(lab_))
        assert spec(lab_, "NodeSet", "compute")["partition"]["config"] == "Default=YES MaxTime=7"
        await undrifted(lab_, "NodeSet", "compute")
        assert minutes(lab_, "compute") == 7


async def test_a_controller_puts_back_its_lines_and_takes_away_what_nobody_declares(
    api_node: Node,
) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await raw(lab_, running)
        by_hand(lab_, "raw")
        by_hand(lab_, "byhand")
        poke(lab_, running)
        assert "raw was changed" in await drifted(lab_, "Controller", "slurm")
        # What differs already is put back when that is chosen.
        await choose(lab_, "Controller", "slurm", "Revert")
        await lab_.until(lambda: "byhand" not in lab_.slurm.partitions)
        await lab_.until(lambda: minutes(lab_, "raw") == 5)
        await undrifted(lab_, "Controller", "slurm")
        assert spec(lab_, "Controller", "slurm")["extraConf"] == LINES


async def test_a_controller_adopts_into_the_one_line_and_appends_what_is_new(
    api_node: Node,
) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await raw(lab_, running)
        await choose(lab_, "Controller", "slurm", "Adopt")
        by_hand(lab_, "raw")
        by_hand(lab_, "byhand", 8, nodes={"configured": "compute"})
        by_hand(lab_, "single", 9, nodes={"configured": "compute-0"})
        poke(lab_, running)
        wanted = LINES.replace("MaxTime=5", "MaxTime=7")
        wanted += "PartitionName=byhand Nodes=compute MaxTime=8 MinNodes=1\n"
        await lab_.until(lambda: spec(lab_, "Controller", "slurm")["extraConf"] == wanted)
        await lab_.until(lambda: "PartitionName=byhand" in conf(lab_))
        poke(lab_, running)
        said = await drifted(lab_, "Controller", "slurm")
        assert "single" in said
        await lab_.until(
            lambda: (
                (found := lab_.condition("Controller", "slurm", "Drifted")) is not None
                and "not adopted" in found.message
                and "names nodes one by one" in found.message
                and "byhand" not in found.message
            )
        )
        assert lab_.slurm.reconfigured == 0


async def test_a_value_that_is_no_choice_is_reported(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await start(lab_)
        await effective(lab_)
        for kind, name in (("Controller", "slurm"), ("NodeSet", "compute")):
            await choose(lab_, kind, name, "revert")
            await lab_.until(
                lambda kind=kind, name=name: lab_.has_reason(kind, name, "DriftUnknown")
            )
            found = lab_.condition(kind, name)
            assert found is not None
            assert "'revert'" in found.message
            assert "Report, Revert or Adopt" in found.message
        await events_of(lab_, running, "DriftUnknown", 2)
        by_hand(lab_, "compute")
        poke(lab_, running)
        await drifted(lab_, "NodeSet", "compute")
        assert minutes(lab_, "compute") == 7
        for kind, name in (("Controller", "slurm"), ("NodeSet", "compute")):
            await choose(lab_, kind, name, None)
            await lab_.until(lambda kind=kind, name=name: lab_.ready(kind, name))


async def test_what_is_rejected_elsewhere_hides_no_drift(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await raw(lab_, running)
        await lab_.apply(partition("bad", allowQos=["nosuch"]))
        await lab_.until(lambda: lab_.has_reason("Partition", "bad", "PartitionRefused"))
        by_hand(lab_, "compute")
        poke(lab_, running)
        assert "compute was changed" in await drifted(lab_, "NodeSet", "compute")
        # Nor does a configuration that slurmctld refuses as a whole.
        await lab_.apply({**CONTROLLER, "spec": {"extraConf": f"{LINES}Bogus=1\n"}})
        await lab_.until(
            lambda: (
                (found := lab_.condition("Controller", "slurm", "ConfigValid")) is not None
                and found.status == "False"
            )
        )
        by_hand(lab_, "raw")
        poke(lab_, running)
        assert "raw was changed" in await drifted(lab_, "Controller", "slurm")


async def test_a_change_by_hand_goes_when_the_partition_is_edited(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await start(lab_)
        await effective(lab_)
        by_hand(lab_, "compute", partition={"state": ["DOWN"]})
        config = {"enabled": True, "config": "MaxNodes=2"}
        await lab_.patch("NodeSet", "compute", {"spec": {"partition": config}})
        await lab_.until(lambda: "MaxNodes=2" in conf(lab_))
        found = live(lab_, "compute")
        assert found["maximums"]["time"]["infinite"]
        assert found["maximums"]["nodes"]["number"] == 2
        assert found["partition"]["state"] == ["UP"]
        (said,) = await events_of(lab_, running, "PartitionReverted")
        assert "MaxTime is 7, declared UNLIMITED" in said


async def test_changed_nodes_are_reported_on_their_nodeset(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await start(lab_)
        await lab_.until(lambda: all(one.comment for one in lab_.slurm.nodes.values()))
        for number in range(2):
            node_by_hand(lab_, f"compute-{number}", weight=5)
        said = await drifted(lab_, "NodeSet", "compute")
        assert said.startswith("changed in Slurm: nodes compute-[0-1]: Weight is 5, declared 1")
        await events_of(lab_, running, "NodesDrifted")
        assert lab_.ready("NodeSet", "compute")
        node_by_hand(lab_, "compute-1", features=["compute", "mine"], weight=1)
        node_by_hand(lab_, "compute-0", weight=1)
        await lab_.until(
            lambda: (
                (found := lab_.condition("NodeSet", "compute", "Drifted")) is not None
                and found.message.endswith(
                    "node compute-1: Features is compute,mine, declared compute. "
                    "See https://penstock.dev/r/ChangedInSlurm"
                )
            )
        )
        await choose(lab_, "NodeSet", "compute", "Revert")
        await lab_.until(lambda: lab_.slurm.nodes["compute-1"].features == ["compute"])
        await undrifted(lab_, "NodeSet", "compute")
        await events_of(lab_, running, "NodesReverted")


async def test_what_all_nodes_show_is_declared_without_a_new_pod(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await start(lab_)
        await lab_.until(lambda: all(one.comment for one in lab_.slurm.nodes.values()))
        await choose(lab_, "NodeSet", "compute", "Adopt")
        pods = {name: list(uids) for name, uids in lab_.kubelet.seen.items()}
        node_by_hand(lab_, "compute-0", weight=5)
        said = await drifted(lab_, "NodeSet", "compute")
        assert "differ from each other" in said
        node_by_hand(lab_, "compute-1", weight=5)
        await lab_.until(lambda: spec(lab_, "NodeSet", "compute").get("extraConf") == "Weight=5")
        await undrifted(lab_, "NodeSet", "compute")
        await lab_.calm()
        assert lab_.kubelet.seen == pods
        assert [one.weight for one in lab_.slurm.nodes.values()] == [5, 5]
        await events_of(lab_, running, "NodesAdopted")
        # The pods of now and of later are all the same.
        await lab_.patch("NodeSet", "compute", {"spec": {"replicas": 3}})
        await lab_.until(lambda: "compute-2" in lab_.slurm.nodes)
        assert lab_.slurm.nodes["compute-2"].weight == 5


async def test_marks_of_partitions_and_nodes_that_come_are_no_drift(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await start(lab_)
        await lab_.apply(partition(nodes=["compute-1", "compute-2"]))
        await lab_.until(lambda: lab_.ready("Partition", "part"))
        await lab_.patch("NodeSet", "compute", {"spec": {"replicas": 4, "extraConf": "Weight=3"}})
        await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
        await lab_.until(lambda: [n.weight for n in lab_.slurm.nodes.values()] == [3] * 4)
        await lab_.until(lambda: "penstock/part" in lab_.slurm.nodes["compute-2"].features)
        poke(lab_, running)
        await lab_.calm(6)
        assert events(running, "NodesDrifted") == []
        assert events(running, "PartitionDrifted") == []
