"""Nobody hears the reconfigure container any more, though slurmctld and its machine work."""

from __future__ import annotations

import asyncio

import pytest

from fault_plans.logs import logging
from fault_plans.plan import Layout
from fault_plans.promises import final_state as expected
from fault_plans.world import GROUP, World
from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver.status import StatusError
from penstock.simulation.event_loop import simulate

LONG_S = 400.0


def unreadable(*_: str) -> str | None:
    raise StatusError(500, "the kubelet does not answer")


def declare(world: World, line: str) -> None:
    world.ask("PATCH", f"{GROUP}/controllers/slurm", {"spec": {"extraConf": f"{line}\n"}})


def conf(world: World, name: str = "slurm-config") -> str:
    found = world.find("/configmaps", name) or {}
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


async def _unheard(line: str) -> None:
    world = await _settled()
    before = conf(world)
    world.server.logs = unreadable
    declare(world, line)
    for _ in range(3):
        await asyncio.sleep(LONG_S)
        for name in ("slurm-config", "slurm-config-slurm"):
            assert conf(world, name) == before
        waits = condition(world, "ConfigApplied")
        assert (waits["status"], waits["reason"]) == ("Unknown", "ConfigTrying")
        assert "log of container reconfigure" in waits["message"]
        assert "has to answer" in waits["message"]
        await world.crash(world.processes[0])
        world.operator()
    world.server.logs = world.machines.log
    await asyncio.sleep(30.0)
    if line.startswith("Bogus"):
        assert conf(world) == before
        assert condition(world, "ConfigApplied")["status"] == "False"
    else:
        assert line in conf(world)
        assert condition(world, "ConfigApplied")["status"] == "True"
    await world.crash(world.processes[0])


async def _no_right() -> None:
    world = await _settled()
    world.machines.unreadable_logs["slurm"] = 403
    declare(world, "SchedulerTimeSlice=9")
    await asyncio.sleep(10.0)
    message = condition(world, "ConfigApplied")["message"]
    assert "Allow the operator's service account to get pods/log" in message
    await world.crash(world.processes[0])


def test_a_refusal_stays_one_when_nobody_is_heard_any_more() -> None:
    with logging(show=False):
        simulate(_refused())


@pytest.mark.parametrize("line", ["SchedulerTimeSlice=9", "BogusKey=1"])
def test_nothing_untried_reaches_slurmctld_for_as_long_as_nobody_is_heard(line: str) -> None:
    with logging(show=False):
        simulate(_unheard(line))


def test_a_missing_right_is_told_with_its_cure() -> None:
    with logging(show=False):
        simulate(_no_right())
