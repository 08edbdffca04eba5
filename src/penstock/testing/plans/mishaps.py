"""What goes wrong: at the API server, in the operator, on the machines and in Slurm.

Everything here ends by itself, or when `World.heal` is called at the end of a plan.
"""

from __future__ import annotations

import asyncio

from penstock.kube.transport import Request
from penstock.testing.apiserver import Trouble
from penstock.testing.faults import Fault
from penstock.testing.plans.dice import Dice
from penstock.testing.plans.plan import LARGEST, Happening
from penstock.testing.plans.world import NODESET, SPACE, World

SLURM_FAULTS = tuple(one for one in Fault if one is not Fault.NONE)


def _writes(request: Request) -> bool:
    return request.method != "GET" and "/events" not in request.path


def _asks(request: Request) -> bool:
    return "/events" not in request.path


async def crash(world: World, writes: int, seconds: float) -> None:
    """The operator crashes after its n-th write from now, and starts again a while later."""
    for process in list(world.processes):
        if writes:
            process.crash_after = writes
            try:
                async with asyncio.timeout(20.0):
                    await process.crashed.wait()
            except TimeoutError:
                process.crash_after = None
        await world.crash(process)
    await asyncio.sleep(seconds)
    if not world.processes:
        world.operator()


async def two_leaders(world: World, seconds: float) -> None:
    """Another process acts at the same time for a while."""
    other = world.operator()
    await asyncio.sleep(seconds)
    await world.crash(other)
    if not world.processes:
        world.operator()


def hold(world: World, seconds: float) -> None:
    """Watches show nothing for a while: the operator lives in the past."""
    for process in world.processes:
        process.connection.hold()
        world.later(seconds, process.connection.release)


def skew(world: World, seconds: float, plural: str) -> None:
    """The watch of one resource is late for a while, the others are not: events out of order."""
    for process in world.processes:
        process.connection.hold(plural)
        world.later(seconds, process.connection.release)


def duplicate(world: World, seconds: float) -> None:
    """Each event comes twice for a while."""
    for process in world.processes:
        process.connection.duplicate = True
        world.later(seconds, lambda one=process.connection: setattr(one, "duplicate", False))


def cut(world: World) -> None:
    """All watches break."""
    for process in world.processes:
        process.connection.cut()


def expire(world: World) -> None:
    """The server's window moves on: 410 Gone."""
    for process in world.processes:
        process.connection.expire()


def refuse(world: World, status: int, times: int) -> None:
    """The next writes are refused."""
    after = 1.0 if status == 429 else None
    _trouble(world, Trouble(status=status, retry_after=after, times=times, when=_writes))


def lose(world: World, times: int) -> None:
    """The next writes are done and their answers lost."""
    _trouble(world, Trouble(lost=True, times=times, when=_writes))


def unreachable(world: World, times: int) -> None:
    """The next requests do not get through."""
    _trouble(world, Trouble(cut=True, times=times, when=_asks))


def slow(world: World, seconds: float, times: int) -> None:
    """The next requests take long."""
    _trouble(world, Trouble(slow=seconds, times=times, when=_asks))


def _trouble(world: World, trouble: Trouble) -> None:
    for process in world.processes:
        process.connection.trouble(trouble)


def slurm(world: World, fault: str, seconds: float) -> None:
    """Slurmrestd misbehaves for a while."""
    world.slurm_fault(Fault(fault))
    world.later(seconds, lambda: world.slurm_fault(Fault.NONE))


async def restart_slurmctld(world: World, seconds: float, lost: str) -> None:
    """Slurmctld restarts; it may have lost what it heard last, or everything."""
    if not world.slurm.up:
        return
    world.slurm.stop()
    await asyncio.sleep(seconds)
    since = world.true_time() - seconds - 10.0
    if world.machines.runs("slurmctld"):
        world.slurm.start(
            lost=lambda node: lost == "all" or (lost == "fresh" and node.started >= since)
        )


def kubelet(world: World, number: int, seconds: float) -> None:
    """The kubelet of a machine stops for a while."""
    name = f"machine-{number}"
    world.machines.fall_silent(name)
    world.later(seconds, lambda: world.machines.come_back(name))


def crash_slurmd(world: World, ordinal: int) -> None:
    """A slurmd ends."""
    world.machines.crash_slurmd(f"{NODESET}-{ordinal}", SPACE)


def jump(world: World, seconds: float) -> None:
    """The operator's wall clock is set."""
    world.clock.jump(seconds)


def _short(dice: Dice) -> float:
    return round(dice.expovariate(1 / 8), 1)


def _long(dice: Dice) -> float:
    return round(dice.expovariate(1 / 30), 1)


def _either(dice: Dice) -> float:
    return dice.choice([_short, _long])(dice)


MISHAPS = {
    "crash": Happening(20, lambda d: (d.randint(0, 12), _short(d)), crash),
    "two_leaders": Happening(6, lambda d: (_short(d),), two_leaders),
    "hold": Happening(10, lambda d: (_either(d),), hold),
    "skew": Happening(
        8, lambda d: (_either(d), d.choice(["pods", "nodesets", "nodes", "controllers"])), skew
    ),
    "duplicate": Happening(3, lambda d: (_long(d),), duplicate),
    "cut": Happening(4, lambda _: (), cut),
    "expire": Happening(4, lambda _: (), expire),
    "refuse": Happening(10, lambda d: (d.choice([409, 429, 500, 503]), d.randint(1, 6)), refuse),
    "lose": Happening(6, lambda d: (d.randint(1, 4),), lose),
    "unreachable": Happening(4, lambda d: (d.randint(1, 20),), unreachable),
    "slow": Happening(5, lambda d: (d.choice([2.0, 29.0, 40.0]), d.randint(1, 5)), slow),
    "slurm": Happening(
        20, lambda d: (d.choice([one.value for one in SLURM_FAULTS]), _long(d)), slurm
    ),
    "restart_slurmctld": Happening(
        8, lambda d: (_short(d), d.choice(["", "fresh", "all"])), restart_slurmctld
    ),
    "kubelet": Happening(5, lambda d: (d.randrange(3), _long(d)), kubelet),
    "crash_slurmd": Happening(4, lambda d: (d.randrange(LARGEST),), crash_slurmd),
    "jump": Happening(4, lambda d: (d.choice([-7200, -600, -5, 5, 600, 7200]),), jump),
}
