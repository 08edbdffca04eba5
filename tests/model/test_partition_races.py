"""A partition that slurmctld was told stays, whenever slurmctld reads its files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fault_plans.logs import logging
from fault_plans.plan import Layout
from fault_plans.promises import final_state as expected
from fault_plans.world import GROUP, NODESET, SPACE, World
from penstock.simulation.event_loop import simulate
from penstock.simulation.faults import Fault
from penstock.simulation.slurm.slurmctld import INVALID_QOS, SlurmctldError

SEEDS = range(1, 9)


async def _settled(seed: int) -> World:
    world = World(seed, Layout())
    world.declare(1)
    world.operator()
    await asyncio.sleep(60.0)
    assert expected.missing(world) == []
    return world


def _key(world: World, line: str) -> None:
    world.ask("PATCH", f"{GROUP}/controllers/slurm", {"spec": {"extraConf": f"{line}\n"}})


def _limit(world: World, minutes: int) -> None:
    spec = {"partition": {"config": f"MaxTime={minutes}"}}
    world.ask("PATCH", f"{GROUP}/nodesets/{NODESET}", {"spec": spec})


def _found(world: World) -> int | None:
    time = world.slurm.ctld.partitions[NODESET]["maximums"]["time"]
    return time["number"] if time["set"] else None


async def _watch(world: World, seconds: float, holds: Callable[[], bool]) -> list[bool]:
    seen: list[bool] = []
    for _ in range(int(seconds / 0.05)):
        await asyncio.sleep(0.05)
        if holds() is not (seen[-1] if seen else None):
            seen.append(holds())
    return seen


async def _amid_a_reconfigure(seed: int) -> list[bool]:
    world = await _settled(seed)
    _key(world, "SchedulerTimeSlice=9")
    # Somewhere between the candidate and the end of the reconfigure.
    await asyncio.sleep(0.5 * seed)
    _limit(world, 7)
    seen = await _watch(world, 60.0, lambda: _found(world) == 7)
    await world.crash(world.processes[0])
    return seen


async def _read_before_the_file_came(seed: int) -> list[bool]:
    world = await _settled(seed)
    old = (world.find("/configmaps", "slurm-config") or {})["data"]
    _limit(world, 7)
    for _ in range(1000):
        await asyncio.sleep(0.01)
        if _found(world) == 7:
            break
    # Somebody has slurmctld reconfigure before the kubelet has brought the new file.
    world.slurm.reads(old)
    seen = await _watch(world, 30.0, lambda: _found(world) == 7)
    await world.crash(world.processes[0])
    return seen


async def _quick_changes(seed: int) -> int:
    world = await _settled(seed)
    reads = 0
    read = world.slurm.ctld.read

    def counted(slurm_conf: str) -> None:
        nonlocal reads
        reads += 1
        read(slurm_conf)

    world.slurm.ctld.read = counted
    for minutes in range(1, 6):
        _limit(world, minutes)
        await asyncio.sleep(0.4 * seed)
    await asyncio.sleep(60.0)
    assert _found(world) == 5
    assert expected.missing(world) == []
    await world.crash(world.processes[0])
    return reads


async def _while_slurmctld_stands_by(seed: int) -> set[str]:
    world = await _settled(seed)
    world.slurm_fault(Fault.STANDBY, SPACE)
    _limit(world, 7)
    told: set[str] = set()
    for _ in range(100 * seed):
        await asyncio.sleep(0.1)
        controller = world.find("slinky.slurm.net/controllers", "slurm") or {}
        told |= {one["reason"] for one in controller["status"]["conditions"]}
    world.slurm_fault(Fault.NONE, SPACE)
    await asyncio.sleep(60.0)
    assert _found(world) == 7
    assert expected.missing(world) == []
    await world.crash(world.processes[0])
    return told


async def _refused_as_the_file_goes(seed: int) -> list[str]:
    world = await _settled(seed)
    world.slurm_fault(Fault.REFUSE, SPACE)
    _limit(world, 7)
    for _ in range(10_000):
        await asyncio.sleep(0.003)
        if "MaxTime=7" in str(world.find("/configmaps", "slurm-config")):
            break
    update = world.slurm.ctld.update_partition

    def refuse(body: dict[str, Any]) -> None:
        assert body
        raise SlurmctldError(*INVALID_QOS)

    world.slurm.ctld.update_partition = refuse
    world.slurm_fault(Fault.NONE, SPACE)
    await asyncio.sleep(5.0)
    world.slurm.ctld.update_partition = update
    await asyncio.sleep(60.0)
    missing = expected.missing(world)
    await world.crash(world.processes[0])
    return missing


async def _beside_a_refused_line(seed: int) -> tuple[float, str, str]:
    """How long a change takes, what is told of the bad line then, and what the file has."""
    world = await _settled(seed)
    _key(world, "BogusKey=1")
    await asyncio.sleep(30.0)
    began = asyncio.get_running_loop().time()
    _limit(world, 7)
    for _ in range(1000):
        await asyncio.sleep(0.01)
        if _found(world) == 7:
            break
    taken = asyncio.get_running_loop().time() - began
    assert await _watch(world, 30.0, lambda: _found(world) == 7) == [True]
    controller = world.find("slinky.slurm.net/controllers", "slurm") or {}
    conf: str = (world.find("/configmaps", "slurm-config") or {})["data"]["slurm.conf"]
    assert "MaxTime=7" in conf
    # What is declared is tried once more, with the partition as it is now.
    _key(world, "# nothing")
    await asyncio.sleep(30.0)
    assert expected.missing(world) == []
    await world.crash(world.processes[0])
    return taken, controller["status"]["lastError"], conf


@pytest.mark.parametrize("seed", SEEDS)
def test_a_partition_does_not_wait_while_a_line_of_its_controller_is_refused(seed: int) -> None:
    with logging(show=False):
        taken, words, conf = simulate(_beside_a_refused_line(seed))
    # A trial alone takes longer than that.
    assert taken < 0.2
    assert "BogusKey" in words
    assert "BogusKey" not in conf


@pytest.mark.parametrize("seed", SEEDS)
def test_a_partition_that_changes_amid_a_reconfigure_does_not_change_back(seed: int) -> None:
    with logging(show=False):
        assert simulate(_amid_a_reconfigure(seed)) in ([False, True], [True])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slurmctld_that_read_its_old_file_is_told_again(seed: int) -> None:
    with logging(show=False):
        assert simulate(_read_before_the_file_came(seed))[-1]


@pytest.mark.parametrize("seed", SEEDS)
def test_changes_in_quick_succession_need_no_reconfigure(seed: int) -> None:
    with logging(show=False):
        assert simulate(_quick_changes(seed)) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slurmctld_that_stands_by_has_refused_nothing(seed: int) -> None:
    with logging(show=False):
        assert "PartitionRefused" not in simulate(_while_slurmctld_stands_by(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_slurmctld_took_with_its_file_is_not_refused(seed: int) -> None:
    with logging(show=False):
        assert simulate(_refused_as_the_file_goes(seed)) == []
