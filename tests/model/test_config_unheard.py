"""Nobody hears the reconfigure container any more, though slurmctld and its machine work."""

from __future__ import annotations

import asyncio

from penstock.api.meta import Json
from penstock.testing.apiserver.status import RefusedError
from penstock.testing.loop import simulate
from penstock.testing.plans import expected
from penstock.testing.plans.plan import Layout
from penstock.testing.plans.quiet import logging
from penstock.testing.plans.world import GROUP, World

LONG_S = 400.0


def unreadable(*_: str) -> str | None:
    raise RefusedError(500, "the kubelet does not answer")


def declare(world: World, line: str) -> None:
    world.ask("PATCH", f"{GROUP}/controllers/slurm", {"spec": {"extraConf": f"{line}\n"}})


def conf(world: World) -> str:
    found = world.find("/configmaps", "slurm-config") or {}
    return found["data"]["slurm.conf"]


def condition(world: World, type_: str) -> Json:
    return (
        expected.condition(world.find("slinky.slurm.net/controllers", "slurm") or {}, type_) or {}
    )


async def _settled() -> World:
    world = World(1, Layout())
    world.declare(1)
    world.operator()
    await asyncio.sleep(60.0)
    assert expected.missing(world) == []
    return world


async def _refused() -> None:
    world = await _settled()
    declare(world, "BogusKey=1")
    await asyncio.sleep(10.0)
    assert condition(world, "ConfigValid")["status"] == "False"
    world.server.logs = unreadable
    await asyncio.sleep(LONG_S)
    await world.crash(world.processes[0])
    world.operator()
    await asyncio.sleep(LONG_S)
    assert "Bogus" not in conf(world)
    assert condition(world, "ConfigValid")["status"] == "False"
    await world.crash(world.processes[0])


async def _good() -> None:
    world = await _settled()
    world.server.logs = unreadable
    declare(world, "SchedulerTimeSlice=9")
    await asyncio.sleep(60.0)
    assert "SchedulerTimeSlice" not in conf(world)
    waits = condition(world, "ConfigApplied")
    assert waits["status"] == "Unknown"
    assert "log of container reconfigure" in waits["message"]
    await asyncio.sleep(LONG_S)
    assert "SchedulerTimeSlice=9" in conf(world)
    told = condition(world, "ConfigApplied")
    assert (told["status"], told["reason"]) == ("True", "ConfigDelivered")
    await world.crash(world.processes[0])


def test_a_refusal_stays_one_when_nobody_is_heard_any_more() -> None:
    with logging(show=False):
        simulate(_refused())


def test_a_change_waits_for_two_minutes_and_goes_without_a_trial_then() -> None:
    with logging(show=False):
        simulate(_good())
