"""What goes wrong: at the API server, in the operator, on the machines and in Slurm.

Everything here ends by itself, or when `World.heal` is called at the end of a plan.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial

from fault_plans.plan import LARGEST, Happening
from fault_plans.random_source import Dice
from fault_plans.world import World
from penstock.kube.client.transport import Request
from penstock.simulation.apiserver import Connection, Trouble
from penstock.simulation.faults import Fault

SLURM_FAULTS = tuple(one for one in Fault if one not in {Fault.NONE, Fault.NODES_FAIL})
"""Those that plans are drawn from; one more would make each of them another one."""


LATEST_S = 50.0
"""A request that is older is given up by the API server itself, after 60 s."""


def _writes(method: str) -> Callable[[Request], bool]:
    """Whether a request is a write, or one by that method only."""

    def fits(request: Request) -> bool:
        wanted = request.method == method if method else request.method != "GET"
        return wanted and "/events" not in request.path and "/leases" not in request.path

    return fits


def _asks(request: Request) -> bool:
    return "/events" not in request.path


async def crash(world: World, writes: int, seconds: float, same: bool) -> None:
    """The operator crashes after its n-th write from now, and starts again a while later.

    It comes back in the `same` pod, or in another one that has to wait for the Lease.
    """
    identity = world.processes[0].identity if same and world.processes else ""
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
        world.operator(identity=identity)


async def two_leaders(world: World, seconds: float) -> None:
    """Another process acts at the same time for a while, without regard to any Lease."""
    other = world.operator(leased=False)
    await asyncio.sleep(seconds)
    await world.crash(other)
    if not world.processes:
        world.operator()


def standby(world: World) -> None:
    """Another process waits for its turn, if there are turns."""
    if world.layout.leased and len(world.processes) < 2:
        world.operator()


def isolate(world: World, seconds: float) -> None:
    """The process that leads reaches the API server no more; another one may take over."""
    for process in world.processes[:1]:
        trouble = Trouble(cut=True, times=sys.maxsize)
        process.connection.trouble(trouble)
        process.connection.delay_events()
        world.later(seconds, partial(_rejoin, process.connection, trouble))


def _rejoin(connection: Connection, trouble: Trouble) -> None:
    if trouble in connection.troubles:
        connection.troubles.remove(trouble)
    connection.release_events()


def hold(world: World, seconds: float) -> None:
    """Watches show nothing for a while: the operator lives in the past."""
    for process in world.processes:
        process.connection.delay_events()
        world.later(seconds, process.connection.release_events)


def skew(world: World, seconds: float, plural: str) -> None:
    """The watch of one resource is late for a while, the others are not: events out of order."""
    plural = world.in_urls(plural)
    for process in world.processes:
        process.connection.delay_events(plural)
        world.later(seconds, process.connection.release_events)


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


def refuse(world: World, status: int, times: int, method: str) -> None:
    """The next writes are refused."""
    after = 1.0 if status == 429 else None
    _trouble(world, Trouble(status=status, retry_after=after, times=times, when=_writes(method)))


def overtake(world: World, number: int) -> None:
    """Just when a pod is to be deleted, somebody resumes its node, and a job comes to it.

    The API server is busy at that moment, so that the delete has to be sent again and again.
    """
    (space, name), (_, host) = world.worker(number), world.node(number)
    slurm = world.slurms[space]

    def resumed(request: Request) -> bool:
        if request.method != "DELETE" or not request.path.endswith(f"/{space}/pods/{name}"):
            return False
        node = slurm.ctld.nodes.get(host)
        if node is not None and "DRAIN" in node.flags:
            slurm.resumed_by_hand(host)
            slurm.submit(len(slurm.free_nodes()))
        return True

    _trouble(world, Trouble(status=500, times=3, when=resumed))


def late(world: World, seconds: float, times: int, method: str) -> None:
    """The next writes arrive long after they were sent, whatever became of who sent them."""
    _trouble(world, Trouble(late=seconds, times=times, when=_writes(method)))


def lose(world: World, times: int, method: str) -> None:
    """The next writes are done and their answers lost."""
    _trouble(world, Trouble(lost=True, times=times, when=_writes(method)))


def unreachable(world: World, times: int) -> None:
    """The next requests do not get through."""
    _trouble(world, Trouble(cut=True, times=times, when=_asks))


def slow(world: World, seconds: float, times: int, method: str) -> None:
    """The next requests, or writes by that method, take long."""
    when = _writes(method) if method else _asks
    _trouble(world, Trouble(slow=seconds, times=times, when=when))


def _trouble(world: World, trouble: Trouble) -> None:
    for process in world.processes:
        process.connection.trouble(trouble)


def slurm(world: World, fault: str, seconds: float, which: int) -> None:
    """Slurmrestd misbehaves for a while."""
    space = world.space(which)
    world.slurm_fault(Fault(fault), space)
    world.later(seconds, lambda: world.slurm_fault(Fault.NONE, space))


async def restart_slurmctld(world: World, seconds: float, lost: str, which: int) -> None:
    """Slurmctld restarts; it may have lost what it heard last, or everything.

    `killed` is what a kill -9 does: it has lost everything when a node had just registered.
    """
    space = world.space(which)
    slurm = world.slurms[space]
    if not slurm.up:
        return
    if slurm.killed() and lost == "killed":
        lost = "all"
    await asyncio.sleep(seconds)
    since = world.true_time() - seconds - 10.0
    if world.machines.slurmctld_returns(space):
        slurm.loses_unsaved()
        world.machines.mounts.reread(space)
        slurm.start(lost=lambda node: lost == "all" or (lost == "fresh" and node.started >= since))


def kubelet(world: World, number: int, seconds: float) -> None:
    """The kubelet of a machine stops for a while."""
    name = f"machine-{number}"
    world.machines.fall_silent(name)
    world.later(seconds, lambda: world.machines.come_back(name))


def lazy_kubelet(world: World, number: int, seconds: float) -> None:
    """The kubelet of a machine looks at changed files in its full pass only, for a while."""
    name = f"machine-{number}"
    world.machines.lazy.add(name)
    world.later(seconds, lambda: world.machines.lazy.discard(name))


def sidecar(world: World, which: int) -> None:
    """The container that tries and hands over a configuration is killed."""
    world.machines.mounts.crash_sidecar(world.space(which))


def crash_slurmd(world: World, number: int) -> None:
    """A slurmd ends."""
    space, name = world.worker(number)
    world.machines.crash_slurmd(name, space)


def shrink(world: World, number: int) -> None:
    """A slurmd ends and comes back with less memory, on which slurmctld drains its node."""
    (space, name), (_, host) = world.worker(number), world.node(number)
    world.slurms[space].shrunk.add(host)
    world.machines.crash_slurmd(name, space)


def jump(world: World, seconds: float) -> None:
    """The operator's wall clock is set."""
    world.clock.jump(seconds)


def _method(dice: Dice) -> str:
    return dice.choice(["", "", "PATCH", "POST", "DELETE"])


def _worker(dice: Dice) -> int:
    return dice.randrange(LARGEST) + LARGEST * dice.choice([0, 0, 1])


def _short(dice: Dice) -> float:
    return round(dice.expovariate(1 / 8), 1)


def _long(dice: Dice) -> float:
    return round(dice.expovariate(1 / 30), 1)


def _either(dice: Dice) -> float:
    return dice.choice([_short, _long])(dice)


MISHAPS = {
    "crash": Happening(20, lambda d: (d.randint(0, 12), _short(d), d.random() < 0.6), crash),
    "two_leaders": Happening(6, lambda d: (_short(d),), two_leaders),
    "standby": Happening(6, lambda _: (), standby),
    "isolate": Happening(6, lambda d: (_long(d),), isolate),
    "hold": Happening(10, lambda d: (_either(d),), hold),
    "skew": Happening(
        8, lambda d: (_either(d), d.choice(["pods", "nodesets", "nodes", "controllers"])), skew
    ),
    "duplicate": Happening(3, lambda d: (_long(d),), duplicate),
    "cut": Happening(4, lambda _: (), cut),
    "expire": Happening(4, lambda _: (), expire),
    "refuse": Happening(
        10, lambda d: (d.choice([409, 429, 500, 503]), d.randint(1, 6), _method(d)), refuse
    ),
    "overtake": Happening(5, lambda d: (_worker(d),), overtake),
    "lose": Happening(6, lambda d: (d.randint(1, 4), _method(d)), lose),
    "late": Happening(6, lambda d: (min(_long(d), LATEST_S), d.randint(1, 4), _method(d)), late),
    "unreachable": Happening(4, lambda d: (d.randint(1, 20),), unreachable),
    "slow": Happening(
        5, lambda d: (d.choice([2.0, 29.0, 40.0]), d.randint(1, 5), _method(d)), slow
    ),
    "slurm": Happening(
        20,
        lambda d: (d.choice([one.value for one in SLURM_FAULTS]), _long(d), d.choice([0, 0, 1])),
        slurm,
    ),
    "restart_slurmctld": Happening(
        8,
        lambda d: (_short(d), d.choice(["", "fresh", "all", "killed"]), d.choice([0, 0, 1])),
        restart_slurmctld,
    ),
    "kubelet": Happening(5, lambda d: (d.randrange(3), _long(d)), kubelet),
    "lazy_kubelet": Happening(4, lambda d: (d.randrange(3), 3 * _long(d)), lazy_kubelet),
    "sidecar": Happening(5, lambda d: (d.choice([0, 0, 1]),), sidecar),
    "crash_slurmd": Happening(4, lambda d: (_worker(d),), crash_slurmd),
    "shrink": Happening(3, lambda d: (_worker(d),), shrink),
    "jump": Happening(4, lambda d: (d.choice([-7200, -600, -5, 5, 600, 7200]),), jump),
}
