"""A restart by the annotation of slurm-operator's documentation, in simulated time."""

from __future__ import annotations

import asyncio

from fault_plans.logs import logging
from fault_plans.plan import Layout
from fault_plans.promises import final_state as expected
from fault_plans.world import GROUP, SPACE, World
from penstock.simulation.event_loop import simulate


def annotate(world: World, value: str) -> None:
    marks = {"metadata": {"annotations": {"restart-trigger": value}}}
    world.ask("PATCH", f"{GROUP}/controllers/slurm", marks)


def slurmctld(world: World) -> str:
    pod = world.find("/pods", "slurm-controller-0", SPACE)
    return pod["metadata"]["uid"] if pod is not None else ""


def test_each_new_value_restarts_slurmctld_once_and_one_that_was_there_before_does_not() -> None:
    """S065."""

    async def story() -> None:
        world = World(1, Layout())
        world.declare(1)
        annotate(world, "1")
        world.operator()
        await asyncio.sleep(120.0)
        first = slurmctld(world)
        job = world.slurm.ctld.run("compute-0")
        await asyncio.sleep(300.0)
        assert slurmctld(world) == first
        annotate(world, "2")
        await asyncio.sleep(120.0)
        second = slurmctld(world)
        assert second != first
        await asyncio.sleep(300.0)
        assert slurmctld(world) == second
        assert job.state == {"RUNNING"}
        assert expected.missing(world) == []
        found = world.find("slinky.slurm.net/controllers", "slurm") or {}
        (told,) = found["status"]["triggers"]
        assert (told["name"], told["value"], told["result"]) == ("restart-trigger", "2", "Done")
        for process in world.processes:
            await process.stop()

    with logging(show=False):
        simulate(story())
