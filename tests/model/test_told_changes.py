"""What a change of a NodeSet takes away is told, also by a process that was not there before."""

from __future__ import annotations

import asyncio

import pytest

from fault_plans.logs import logging
from fault_plans.plan import Layout
from fault_plans.world import GROUP, NODESET, World
from penstock.api.kubernetes.meta import Json
from penstock.simulation.event_loop import simulate

PATH = f"{GROUP}/nodesets/{NODESET}"


def told(world: World, reason: str) -> list[str]:
    """The notes of a NodeSet's events with that reason."""
    every = world.server.objects("events.k8s.io/events")
    return [
        one["note"]
        for one in every
        if one["reason"] == reason and one["regarding"]["kind"] == "NodeSet"
    ]


def config(world: World, text: str) -> None:
    """A merge patch of the whole text."""
    world.ask("PATCH", PATH, {"spec": {"partition": {"config": text}}})


async def restarted(world: World) -> None:
    await world.crash(world.processes[0])
    world.processes.clear()


async def _patched(*, away: bool) -> tuple[list[str], Json]:
    world = World(1, Layout())
    world.declare(1)
    world.operator()
    await asyncio.sleep(60.0)
    config(world, "MaxTime=30 Hidden=YES State=UP")
    await asyncio.sleep(60.0)
    assert told(world, "PartitionKeysGone") == []
    if away:
        await restarted(world)
    config(world, "State=DRAIN")
    if away:
        await asyncio.sleep(10.0)
        world.operator()
    await asyncio.sleep(60.0)
    found = told(world, "PartitionKeysGone")
    partition: Json = world.slurm.ctld.partitions[NODESET]
    await world.crash(world.processes[0])
    return found, partition


def test_the_keys_that_a_patch_takes_away_are_told_once() -> None:
    """S019."""
    with logging(show=False):
        for away in (False, True):
            notes, partition = simulate(_patched(away=away))
            assert notes == [
                "Partition compute: parameters were removed; "
                "MaxTime=30 (now UNLIMITED), Hidden=YES (now NO): Slurm's default holds again"
            ]
            assert partition["partition"]["state"] == ["DRAIN"]
            assert not partition["maximums"]["time"]["set"]


async def _patched_twice(pause: float) -> list[str]:
    world = World(1, Layout())
    world.declare(1)
    world.operator()
    await asyncio.sleep(60.0)
    config(world, "MaxTime=30")
    await asyncio.sleep(pause)
    config(world, "State=DRAIN")
    await asyncio.sleep(60.0)
    found = told(world, "PartitionKeysGone")
    await world.crash(world.processes[0])
    return found


@pytest.mark.parametrize("pause", [0.2, 0.4, 0.6, 0.8, 1.0, 5.0])
def test_a_key_that_slurmctld_was_told_and_its_file_never_had_is_told_once(pause: float) -> None:
    with logging(show=False):
        (note,) = simulate(_patched_twice(pause))
    assert "MaxTime=30 (now UNLIMITED)" in note


async def _upgraded(*, away: bool) -> list[str]:
    world = World(1, Layout())
    world.declare(1)
    world.operator()
    upgrade: Json = {"spec": {"replicas": 2, "partition": {"config": "MaxTime=5"}}}
    world.server.ask("PATCH", PATH, upgrade, user="helm")
    await asyncio.sleep(60.0)
    by_hand: Json = {"spec": {"replicas": 3, "partition": {"config": "MaxTime=9"}}}
    world.server.ask("PATCH", PATH, by_hand, user="kubectl-patch")
    await asyncio.sleep(60.0)
    assert told(world, "FieldsSetBack") == []
    if away:
        await restarted(world)
        world.operator()
        await asyncio.sleep(30.0)
    world.server.ask("PATCH", PATH, upgrade, user="helm")
    await asyncio.sleep(60.0)
    found = told(world, "FieldsSetBack")
    await world.crash(world.processes[0])
    return found


def test_what_a_release_takes_from_a_user_is_told_with_both_values() -> None:
    """S034."""
    with logging(show=False):
        for away in (False, True):
            assert simulate(_upgraded(away=away)) == [
                "helm overwrote fields of other managers: "
                'spec.partition.config="MaxTime=9" (set by kubectl-patch) is now "MaxTime=5"; '
                "spec.replicas=3 (set by kubectl-patch) is now 2"
            ]
