"""Partitions of a SlurmCluster whose own lines slurmctld rejects: they do not wait."""

from __future__ import annotations

import asyncio

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.simulation.event_loop import simulate
from penstock.slurm.conf.includes import resolved
from penstock.slurm.partition.declaration import partition_lines
from unit.controllers.nebius.lab import CURRENT, SHAPES, SPACE, Lab, operated, played

STARTUP = names.slurm_configs("slurm")
GOOD = names.last_known_good_configs("slurm")
MAIN = "PartitionName=main Nodes=ALL Default=YES"


def edit(lab: Lab, lines: list[str], **spec: object) -> None:
    """Declare these partitions, and change other fields."""
    partitions: Json = {"configType": "custom", "rawConfig": lines}
    lab.world.edit_cluster(SPACE, {"partitionConfiguration": partitions, **spec})


def conf(lab: Lab, name: str = STARTUP) -> str:
    """The slurm.conf of a ConfigMap."""
    return resolved(lab.get("/configmaps", name)["data"])


def shown(lab: Lab) -> dict[str, object]:
    """MaxTime by partition, as slurmctld has it."""
    found = lab.world.slurms[SPACE].ctld.partitions
    return {name: one["maximums"]["time"].get("number") for name, one in found.items()}


async def rejected(lab: Lab, words: str) -> None:
    await lab.until(
        lambda: lab.condition("ConfigValid")[0] == "False" and words in lab.condition()[2]
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_partitions_are_changed_made_and_removed_on_top_of_the_last_known_good_files(
    shape: str,
) -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        gone = "PartitionName=gone Nodes=ALL"
        edit(lab, [MAIN, gone])
        await lab.available()
        custom = "BogusKey=1\nPartitionName=own Nodes=ALL MaxTime=5\n"
        edit(lab, [MAIN, gone], customSlurmConfig=custom)
        await rejected(lab, "BogusKey")
        edit(lab, [f"{MAIN} MaxTime=7", "PartitionName=new Nodes=ALL MaxTime=8"])
        wanted = {"main": 7, "new": 8, "own": 5}
        await lab.until(lambda: shown(lab) == wanted, 60)
        for name in (STARTUP, GOOD):
            await lab.until(
                lambda name=name: partition_lines(conf(lab, name)).keys() == wanted.keys()
            )
            assert "BogusKey" not in conf(lab, name)
            assert "KillWait=30" in conf(lab, name)
        assert lab.condition("ConfigValid")[0] == "False"
        assert "BogusKey" in lab.condition("ConfigApplied")[2]
        # The declaration with these partitions has its own trial, which changes nothing.
        await lab.settled(60)
        assert await lab.settled(60) == []
        assert shown(lab) == wanted
        edit(lab, [f"{MAIN} MaxTime=9"], customSlurmConfig="KillWait=31\n")
        await lab.available()
        await lab.until(lambda: shown(lab) == {"main": 9})
        assert lab.condition("ConfigValid")[0] == "True"

    played(play, shape)


def test_a_rejection_outlives_the_operator_and_partitions_go_on_with_the_next_one() -> None:
    async def story() -> None:
        lab = Lab(CURRENT)
        lab.world.declare(2)
        async with operated(lab):
            await lab.available()
            edit(lab, [MAIN], customSlurmConfig="BogusKey=1\n")
            await rejected(lab, "BogusKey")
        async with operated(lab):
            edit(lab, [f"{MAIN} MaxTime=7"])
            await lab.until(lambda: shown(lab) == {"main": 7})
            await rejected(lab, "BogusKey")
            assert "BogusKey" not in conf(lab)

    simulate(story())


def test_a_partition_that_waits_for_a_new_pod_of_slurmctld_is_not_written_again() -> None:
    async def story() -> None:
        lab = Lab(CURRENT)
        lab.world.declare(2)
        process = lab.world.operator()
        await lab.available()
        edit(lab, [MAIN])
        await lab.available()
        await asyncio.sleep(30.0)
        # A changed template, whose pod nobody makes.
        lab.world.workloads.absent.add("apps/statefulsets")
        munge = {"controller": {"munge": {"image": "munge:26.05-2"}}}
        lab.world.edit_cluster(SPACE, {"slurmNodes": munge})
        await asyncio.sleep(2.0)
        edit(lab, [MAIN, "PartitionName=new Nodes=ALL"], customSlurmConfig="BogusKey=1\n")
        await rejected(lab, "BogusKey")
        await asyncio.sleep(5.0)
        assert not [one for one in await lab.settled(20.0) if "candidate" in one]
        assert shown(lab).keys() == {"main"}
        await lab.until(lambda: shown(lab).keys() == {"main", "new"})
        await lab.world.crash(process)

    simulate(story())
