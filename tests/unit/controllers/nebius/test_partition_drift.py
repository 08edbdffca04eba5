"""Partitions and nodes of a SlurmCluster that somebody changed in Slurm itself."""

from __future__ import annotations

from typing import Any

import pytest

from fault_plans import worker_sets
from fault_plans.api_names import CLUSTER
from fault_plans.kinds import path_of
from fault_plans.world import NODESET
from penstock.api.cluster.marks import DRIFT
from penstock.api.kubernetes.meta import Json
from unit.controllers.nebius.lab import CURRENT, NODESETS, OLDER, SHAPES, SPACE, Lab, played

IN_TIME_S = 30.0
MAIN = "PartitionName=main Nodes=ALL Default=YES"


def by_hand(lab: Lab, name: str, minutes: int, **body: Any) -> None:
    """`scontrol update partition`, or `create`."""
    time = {"set": True, "infinite": False, "number": minutes}
    ctld = lab.world.slurms[SPACE].ctld
    ctld.update_partition({"name": name, "maximums": {"time": time}, **body})


def minutes(lab: Lab, name: str) -> object:
    found = lab.world.slurms[SPACE].ctld.partitions.get(name)
    return found["maximums"]["time"].get("number") if found is not None else None


def choose(lab: Lab, word: str, path: str = "") -> None:
    path = path or path_of(SPACE, worker_sets.OF_CLUSTER, CLUSTER)
    lab.world.ask("PATCH", path, {"metadata": {"annotations": {DRIFT: word}}})


def declare(lab: Lab, **partitions: object) -> None:
    lab.world.edit_cluster(SPACE, {"partitionConfiguration": partitions})


def notes(lab: Lab, reason: str) -> list[str]:
    every: list[Json] = lab.world.server.objects("events.k8s.io/events", SPACE)
    return [one["note"] for one in every if one["reason"] == reason]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_partition_changed_by_hand_is_reported_in_time_with_both_values(shape: str) -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        declare(lab, configType="custom", rawConfig=[f"{MAIN} MaxTime=60"])
        await lab.available()
        await lab.until(lambda: minutes(lab, "main") == 60)
        await lab.settled()
        by_hand(lab, "main", 7)
        words = "partition main was changed in Slurm: MaxTime is 7, declared 60"
        await lab.until(lambda: words in lab.condition("Drifted")[2], IN_TIME_S)
        assert lab.condition("Drifted")[:2] == ("True", "ChangedInSlurm")
        assert lab.condition()[0] == "True"
        await lab.settled()
        assert minutes(lab, "main") == 7
        choose(lab, "Revert")
        await lab.until(lambda: minutes(lab, "main") == 60)
        await lab.until(lambda: lab.condition("Drifted")[0] == "False")
        events = [one for one in notes(lab, "PartitionDrifted") if words[1:] in one]
        assert len(events) == 1

    played(play, shape)


def test_a_changed_partition_is_adopted_where_it_is_declared() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        choose(lab, "Adopt")
        declare(lab, configType="custom", rawConfig=[MAIN, "PartitionName=b Nodes=ALL MaxTime=3"])
        await lab.available()
        await lab.settled()
        by_hand(lab, "b", 4)
        by_hand(lab, "made", 5, nodes={"configured": "ALL"})

        def spec() -> Json:
            found: Json = lab.cluster["spec"]
            return found

        def lines() -> str:
            return str(spec()["partitionConfiguration"]["rawConfig"][1])

        await lab.until(lambda: "MaxTime=4" in lines())
        await lab.until(lambda: "PartitionName=made" in spec()["customSlurmConfig"])
        # What is adopted at once may never be reported by the condition.
        await lab.until(lambda: lab.condition("Drifted")[0] != "True")
        await lab.available()
        assert notes(lab, "PartitionAdopted")
        assert (minutes(lab, "b"), minutes(lab, "made")) == (4, 5)

    played(play)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_node_changed_by_hand_is_reported_and_reverted_as_chosen(shape: str) -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        plural, name = (NODESETS, NODESET) if shape == CURRENT else ("slurmclusters", CLUSTER)
        (node, *_) = sorted(lab.world.slurms[SPACE].ctld.nodes)
        ctld = lab.world.slurms[SPACE].ctld
        await lab.settled()
        ctld.update_node(node, [], {"weight": {"set": True, "number": 9}})
        words = f"node {node}: Weight is 9, declared 1"
        await lab.until(lambda: words in lab.condition("Drifted", plural, name)[2], IN_TIME_S)
        of = worker_sets.OF_NEBIUS if shape == CURRENT else worker_sets.OF_CLUSTER
        path = path_of(SPACE, of, name)

        def static() -> object:
            return lab.of_kind(plural, name)["spec"].get("nodeConfig", {}).get("static")

        choose(lab, "Adopt", path)
        words = "the nodes of the set differ from each other"
        await lab.until(lambda: words in lab.condition("Drifted", plural, name)[2])
        for other in sorted(ctld.nodes):
            ctld.update_node(other, [], {"weight": {"set": True, "number": 9}})
        if shape == OLDER:
            words = "the SlurmCluster has no field for them: choose Revert"
            await lab.until(lambda: words in lab.condition("Drifted", plural, name)[2], 300)
            choose(lab, "Revert", path)
        else:
            await lab.until(lambda: static() == "Weight=9", 300)
        await lab.until(lambda: lab.condition("Drifted", plural, name)[0] == "False", 300)
        assert lab.gone == [one for one in lab.gone if not one.startswith("pods/")]

    played(play, shape)
