"""The whole operator in simulated time: slurm.key changes, and no daemon is ever locked out."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

import pytest

from fault_plans.plan import Layout
from fault_plans.promises import auth_keys as lockout
from fault_plans.promises.auth_keys import Lockouts
from fault_plans.world import CORE, SPACE, World
from penstock.simulation.faults import Fault
from penstock.slurm.auth.key_rotation import Phase, Ring
from support.stories import story, well

NEW, NEWER = b"n" * 64, b"m" * 64
FEWEST = 12
"""Writes that a change takes at least."""
WITH_LOGIN = Layout(login=True)


@contextmanager
def watch(world: World) -> Generator[Lockouts]:
    found = Lockouts(world)
    task = asyncio.create_task(found.run())
    yield found
    task.cancel()
    assert found.broken == []


def uids(world: World, *apps: str) -> set[str]:
    return {one["metadata"]["uid"] for one in lockout.pods(world, *apps, space=SPACE)}


def change(world: World, key: bytes) -> None:
    data = {"slurm.key": base64.b64encode(key).decode()}
    assert world.ask("PATCH", f"{CORE}/secrets/slurm-auth-slurm", {"data": data}).status == 200


def ring(world: World) -> Ring:
    found = lockout.ring(world, SPACE)
    assert found is not None
    return found


def settled(world: World, key: bytes) -> bool:
    """Whether all daemons sign with a key and believe no other one."""
    return not list(lockout.missing(world, key, SPACE))


async def until(holds: Callable[[], bool], seconds: float = 3600.0) -> None:
    for _ in range(int(seconds / 0.1)):
        if holds():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it did not come about")


def test_all_daemons_follow_and_only_logins_are_made_anew() -> None:
    """Feature row 10, D17."""

    async def tell(world: World) -> None:
        kept, logins = uids(world, "slurmd", "slurmctld"), uids(world, "login")
        job = world.slurm.submit(2)
        assert job is not None
        with watch(world) as seen:
            change(world, NEW)
            await until(lambda: settled(world, NEW), 300)
        assert seen.longest == {}
        assert uids(world, "slurmd", "slurmctld") == kept
        assert not uids(world, "login") & logins
        assert "RUNNING" in job.state
        world.slurm.finish(job)
        await well(world)

    story(tell, WITH_LOGIN)


def test_a_second_change_in_the_middle_of_the_first_one_comes_after_it() -> None:
    async def tell(world: World) -> None:
        with watch(world):
            change(world, NEW)
            await until(lambda: ring(world).phase is Phase.CLIENTS)
            change(world, NEWER)
            await until(lambda: settled(world, NEWER))
        await well(world)

    story(tell, WITH_LOGIN)


def test_a_cluster_without_workers_has_its_key_changed() -> None:
    """Slurm lists no node then, which who did not delete the last one takes for no answer."""

    async def tell(world: World) -> None:
        world.scale(0)
        await well(world)
        await world.crash(world.processes[0])
        world.operator()
        change(world, NEW)
        await until(lambda: settled(world, NEW), 300)
        world.scale(2)
        await well(world)

    story(tell, WITH_LOGIN)


async def _lazy(world: World) -> None:
    """Files come a minute and a half late on two machines of three."""
    world.machines.lazy.update({"machine-0", "machine-1"})


async def _silent(world: World) -> None:
    """Slurm does not answer the operator for a while."""
    world.slurm_fault(Fault.HANG, SPACE)
    world.later(90.0, lambda: world.slurm_fault(Fault.NONE, SPACE))


async def _killed(world: World) -> None:
    """slurmctld is restarted again and again."""
    for _ in range(10):
        await asyncio.sleep(7.0)
        world.slurm.stop()
        await asyncio.sleep(2.0)
        world.machines.mounts.reread(SPACE)
        world.slurm.start()


async def _scaled(world: World) -> None:
    """Workers come and go."""
    for replicas in (4, 1, 3, 2):
        await asyncio.sleep(6.0)
        world.scale(replicas)


async def _deleted(world: World) -> None:
    """Workers and slurmctld are made anew."""
    for name in ("compute-0", "slurm-controller-0", "compute-1"):
        await asyncio.sleep(8.0)
        world.ask("DELETE", f"{CORE}/pods/{name}", {})


async def _reconfigured(world: World) -> None:
    """Somebody reconfigures all the time."""
    for _ in range(30):
        await asyncio.sleep(2.0)
        if world.slurm.up:
            world.machines.mounts.reread(SPACE)


@pytest.mark.parametrize("trouble", [_lazy, _silent, _killed, _scaled, _deleted, _reconfigured])
def test_nobody_is_locked_out_whatever_happens_meanwhile(
    trouble: Callable[[World], Awaitable[None]],
) -> None:
    async def tell(world: World) -> None:
        with watch(world):
            change(world, NEW)
            await trouble(world)
            await until(lambda: settled(world, NEW))
        world.machines.lazy.clear()
        await well(world)

    story(tell, WITH_LOGIN)


@pytest.mark.parametrize("writes", range(1, 15))
def test_an_operator_that_ends_after_any_write_goes_on_where_it_was(writes: int) -> None:
    async def tell(world: World) -> None:
        (process,) = world.processes
        process.crash_after = writes
        with watch(world) as seen:
            change(world, NEW)
            await until(lambda: process.crashed.is_set() or settled(world, NEW))
            await world.crash(process)
            world.operator()
            await until(lambda: settled(world, NEW))
        assert process.crashed.is_set() or writes > FEWEST
        assert seen.longest == {}
        await well(world)

    story(tell, WITH_LOGIN)
