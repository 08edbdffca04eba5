"""Jobs that need nodes which slurmctld powers up and down, in plans with SlurmClusters.

The first of them declares an ephemeral NodeSet. `PowerSaving` is slurmctld's part, as seen with
Slurm 26.05: calls of its programs can be lost, and it repeats none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from fault_plans import nebius_specs as specs
from fault_plans import worker_sets
from fault_plans.kinds import path_of
from fault_plans.plan import Family, Happening
from fault_plans.promises.final_state import condition
from fault_plans.random_source import Dice
from penstock.api.kubernetes.meta import Json
from penstock.simulation.kubelet.pod_lifecycle import PODS, node_name
from penstock.simulation.slurm.slurmctld import UNFINISHED, SimulatedJob

if TYPE_CHECKING:
    from fault_plans.nebius_world import NebiusWorld
    from penstock.simulation.apiserver import Change

BURST, SIZE = "burst", 2
_POWER_STATES = f"{worker_sets.NEBIUS}/nodesetpowerstates"
IDLE_S, DOWN_S, TICK_S = 15.0, 20.0, 2.0
_AWAKE = frozenset({"CLOUD", "DYNAMIC_NORM"})
_WAITING = frozenset({"RUNNING", "CONFIGURING"})


class PowerSaving:
    """slurmctld's power saving of the nodes of one NodeSet."""

    def __init__(self, world: NebiusWorld, space: str, name: str, size: int) -> None:
        self.world, self.space, self.name, self.size = world, space, name, size
        self.slurm = world.slurms[space]
        self.path = path_of(space, worker_sets.OF_NEBIUS, name).replace(
            "nodesets", "nodesetpowerstates"
        )
        self.calls_lost = False
        """Whether each call of Slurm's programs is lost now."""
        self.by_hand = False
        """Whether a user writes the active nodes at this moment."""
        self.queue: list[float] = []
        """Jobs that no node has yet, by their seconds."""
        self.lasts: dict[int, float] = {}
        """By id of a job, how many seconds it runs."""
        self.waits: dict[int, float] = {}
        """By id, since when a job waits for its node."""
        self.longest = 0.0
        self.ended = 0
        self.since: dict[str, float] = {}
        """Since when a node is in its power state, or idle."""
        world.server.store.listeners.append(self._changed)

    @property
    def now(self) -> float:
        """Seconds of the running loop."""
        return asyncio.get_running_loop().time()

    @property
    def names(self) -> list[str]:
        """Names of the nodes."""
        return [f"{self.name}-{number}" for number in range(self.size)]

    def _changed(self, change: Change) -> None:
        """Nobody but a user takes a node with a job from those that have a pod."""
        if (
            self.by_hand
            or change.resource != _POWER_STATES
            or change.key != (self.space, self.name)
        ):
            return
        if change.old is None or change.new is None or change.new.obj == change.old.obj:
            return
        for number in _active(change.old.obj) - _active(change.new.obj):
            node = f"{self.name}-{number}"
            if jobs := [job.id for job in self.slurm.jobs_on(node)]:
                self.world.promises.broken.append(f"{node} was suspended while it had jobs {jobs}")

    def _set(self, name: str, *flags: str) -> None:
        node, kept = self.slurm.ctld.nodes[name], {"DRAIN"}
        if "POWERING_DOWN" in flags:
            # It ends a drain of anybody, and leaves its words. Seen with Slurm 26.05.
            kept = set[str]()
            self.slurm.drains.pop(name, None)
        node.flags = {"CLOUD", *flags, *(node.flags & kept)}
        self.since[name] = self.now
        self.slurm.ctld.touch()

    def _program(self, number: int, *, adds: bool) -> None:
        """What power-manager does; a lost call is made up for by nobody but the operator."""
        live = self.world.find(_POWER_STATES, self.name, self.space)
        if live is None or self.calls_lost:
            return
        active = _active(live)
        active = active | {number} if adds else active - {number}
        self.world.ask("PATCH", self.path, {"spec": {"activeNodes": sorted(active)}})

    def submit(self, seconds: float) -> None:
        """A job, which gets a node that has none, whatever its power state."""
        self.queue.append(seconds)

    def _assign(self) -> None:
        for number, name in enumerate(self.names):
            node = self.slurm.ctld.nodes[name]
            is_down = "POWERED_DOWN" in node.flags
            free = node.flags <= _AWAKE and node.base == "IDLE" and name in self.slurm.slurmds
            is_open = is_down and "DRAIN" not in node.flags
            if not self.queue or self.slurm.jobs_on(name) or not (free or is_open):
                continue
            if name in self.slurm.ctld.maintained:
                continue
            job = self.slurm.ctld.run(name, start=int(self.world.true_time()))
            self.lasts[job.id] = self.queue.pop(0)
            self.since[name] = self.now
            if is_down:
                job.state = set(_WAITING)
                self.waits[job.id] = self.now
                self._set(name, "POWERING_UP")
                self._program(number, adds=True)

    def tick(self) -> None:
        """Jobs start and end, nodes boot, and idle ones go down; nothing without slurmctld."""
        if not self.slurm.up:
            return
        self._keep_records()
        for number, name in enumerate(self.names):
            node, age = self.slurm.ctld.nodes[name], self.now - self.since[name]
            slurmd, jobs = self.slurm.slurmds.get(name), self.slurm.jobs_on(name)
            if "POWERING_UP" in node.flags:
                booted = slurmd is not None and slurmd.registered
                if booted and slurmd is not None and slurmd.started >= self._wall(name):
                    node.base = "IDLE"
                    self._set(name)
                    for job in jobs:
                        self._start(job)
            elif "POWERING_DOWN" in node.flags:
                if age > DOWN_S:
                    node.base, node.reason = "IDLE", "" if node.base == "DOWN" else node.reason
                    self._set(name, "POWERED_DOWN")
            elif "POWERED_DOWN" in node.flags and self._came_by_itself(name):
                node.base = "IDLE"
                self._set(name)
            elif jobs:
                self._end(name, jobs, age)
            elif "POWERED_DOWN" not in node.flags and (age > IDLE_S or "POWER_DOWN" in node.flags):
                self._set(name, "POWERING_DOWN")
                self._program(number, adds=False)
        self._assign()

    def _keep_records(self) -> None:
        """Nodes of slurm.conf have a record from the start, also when slurmctld lost its state."""
        for name in self.names:
            node = self.slurm.ctld.nodes.get(name)
            if node is None:
                self.slurm.ctld.register(name, started=0)
            elif "CLOUD" in node.flags:
                continue
            flags = () if name in self.slurm.slurmds else ("POWERED_DOWN",)
            self._set(name, *flags)
            for job in self.slurm.jobs_on(name):
                self.slurm.ctld.finish(job, "NODE_FAIL")

    def _wall(self, name: str) -> int:
        """When the power-up of a node was asked for, in seconds as slurmd notes its start."""
        return int(self.world.true_time() - self.now + self.since[name])

    def _came_by_itself(self, name: str) -> bool:
        """Whether slurmd started and registered on a node that counts as powered down.

        slurmctld takes it as up and idle from then on, so it is suspended later as others are: so
        it is after slurmctld lost its state while the node booted. Source: slurmctld's node_mgr.c.
        """
        slurmd = self.slurm.slurmds.get(name)
        return slurmd is not None and slurmd.registered and slurmd.started >= self._wall(name)

    def _start(self, job: SimulatedJob) -> None:
        job.state = {"RUNNING"}
        self.slurm.ctld.touch()
        if (began := self.waits.pop(job.id, None)) is not None:
            self.longest = max(self.longest, self.now - began)

    def _end(self, name: str, jobs: list[SimulatedJob], age: float) -> None:
        for job in jobs:
            if age > self.lasts.get(job.id, 0.0):
                self.slurm.finish(job)
                self.ended += 1
                self.since[name] = self.now

    async def run(self) -> None:
        """Let time pass, for as long as the world is there."""
        while True:
            self.tick()
            await asyncio.sleep(TICK_S)

    def go_on(self) -> None:
        """Nothing is lost any more; jobs wait on, and one more comes."""
        self.calls_lost = False
        for number in self.waits:
            job = self.slurm.ctld.jobs.get(number)
            if job is not None:
                job.state, job.end = set(_WAITING), 0
        self.submit(10.0)
        self.slurm.ctld.touch()

    def missing(self) -> Iterator[str]:
        """What is not as it is once the last job has ended."""
        where = f"of NodeSet {self.name} of {self.space}"
        if self.queue:
            yield f"{len(self.queue)} jobs {where} have no node"
        for number in self.waits:
            job = self.slurm.ctld.jobs.get(number)
            if job is not None and job.state & UNFINISHED:
                yield f"job {number} {where} waits for its node"
        for name in self.names:
            node = self.slurm.ctld.nodes.get(name)
            if node is None or "POWERED_DOWN" not in node.flags:
                yield f"{name} {where} is not powered down: {node}"
        for pod in self.world.server.objects(PODS, self.space):
            if node_name(pod) in self.names:
                yield f"pod {pod['metadata']['name']} {where} stays"
        live = self.world.find(_POWER_STATES, self.name, self.space)
        if live is None or _active(live):
            yield f"the active nodes {where} are {live}"
        found = self.world.find(worker_sets.NEBIUS_NODESETS, self.name, self.space)
        ready = condition(found, "Ready") if found is not None else None
        if ready is None or ready["status"] != "True":
            yield f"NodeSet {self.name} of {self.space} is not ready: {ready}"


def _active(obj: Json) -> set[int]:
    return set(obj["spec"].get("activeNodes", []))


def _power(world: NebiusWorld, which: int) -> PowerSaving | None:
    """The power saving of a cluster, with an ephemeral NodeSet from then on."""
    if world.is_older:
        return None
    space = world.space(which)
    if space not in world.power:
        spec = {**specs.node_set(SIZE), "ephemeralNodes": True, "initialNumberEphemeralNodes": 0}
        world.make(space, world.plural, "NodeSet", BURST, spec)
        power = world.power[space] = PowerSaving(world, space, BURST, SIZE)
        world.at_end.append(power.go_on)
        world.background.append(asyncio.create_task(power.run()))
    return world.power[space]


def power_job(world: NebiusWorld, seconds: float, which: int) -> None:
    """`sbatch`, of a job for which a node is powered up."""
    if (power := _power(world, which)) is not None:
        power.submit(seconds)


def suspend_node(world: NebiusWorld, number: int, which: int) -> None:
    """Somebody takes an ordinal from the active nodes by hand."""
    power = _power(world, which)
    live = world.find(_POWER_STATES, BURST, world.space(which))
    if power is not None and live is not None:
        active = sorted(_active(live) - {number})
        power.by_hand = True
        world.ask("PATCH", power.path, {"spec": {"activeNodes": active}})
        power.by_hand = False


def delete_power_state(world: NebiusWorld, which: int) -> None:
    """Somebody deletes the object with the active nodes."""
    if (power := _power(world, which)) is not None:
        world.ask("DELETE", power.path, {})


def lose_power_calls(world: NebiusWorld, seconds: float, which: int) -> None:
    """Calls of Slurm's programs are lost for a while."""
    power = world.power.get(world.space(which))
    if power is not None:
        power.calls_lost = True
        world.later(seconds, partial(setattr, power, "calls_lost", False))


def missing(world: NebiusWorld) -> Iterator[str]:
    """What is not as declared of nodes that jobs power up."""
    for power in world.power.values():
        yield from power.missing()


def _which(dice: Dice) -> int:
    return dice.choice([0, 0, 1])


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / 30), 1)


FAMILY = Family(
    "jobs that power nodes up",
    dice=42,
    share=0.2,
    users={
        "power_job": Happening(6, lambda d: (_while(d), _which(d)), power_job),
        "suspend_node": Happening(2, lambda d: (d.randrange(SIZE), _which(d)), suspend_node),
        "delete_power_state": Happening(1, lambda d: (_which(d),), delete_power_state),
    },
    faults={
        "lose_power_calls": Happening(3, lambda d: (2 * _while(d), _which(d)), lose_power_calls)
    },
)
