"""Power saving over a while: jobs come, programs fail, and the operator ends and starts again."""

from __future__ import annotations

import asyncio
import random

import pytest

from fault_plans import nebius_specs, worker_sets
from fault_plans.kinds import path_of
from penstock.api.kubernetes.meta import Json
from penstock.simulation.event_loop import simulate
from penstock.simulation.slurm.slurmctld import SimulatedJob
from unit.controllers.nebius.lab import CURRENT, SPACE, Lab

NAME, SIZE = "compute", 3
POWER_STATE = path_of(SPACE, worker_sets.OF_NEBIUS, NAME).replace("nodesets", "nodesetpowerstates")
IDLE_S, DOWN_S, JOB_S = 15.0, 20.0, 10.0
LONG_S = 300.0
"""Far more than two starts of a worker and an operator that is away."""


class PowerSaving:
    """slurmctld's power saving of the nodes of one NodeSet, as seen with Slurm 26.05.

    A call of its programs fails now and then, as while the API server is away for long.
    """

    def __init__(self, lab: Lab, dice: random.Random) -> None:
        self.lab, self.dice = lab, dice
        self.slurm = lab.world.slurm
        self.since: dict[str, float] = {}
        """Since when a node is in its power state, or idle."""
        self.waits: dict[int, float] = {}
        """By id, when a job came that waits for its node."""
        self.longest = 0.0
        self.ended = 0
        for number in range(SIZE):
            node = self.slurm.ctld.register(f"{NAME}-{number}", started=0)
            node.flags = {"CLOUD", "POWERED_DOWN"}
            self.since[node.name] = self.now

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def _set(self, name: str, *flags: str) -> None:
        self.slurm.ctld.nodes[name].flags = {"CLOUD", *flags}
        self.since[name] = self.now
        self.slurm.ctld.touch()

    def _program(self, number: int, *, adds: bool) -> None:
        """What power-manager does; a lost call is made up for by nobody but the operator."""
        live = self.lab.find(f"{worker_sets.NEBIUS}/nodesetpowerstates", NAME)
        if live is None or self.dice.random() < 0.3:
            return
        active = set(live["spec"].get("activeNodes", []))
        active = active | {number} if adds else active - {number}
        body: Json = {"spec": {"activeNodes": sorted(active)}}
        self.lab.world.ask("PATCH", POWER_STATE, body)

    def submit(self) -> None:
        """A job for a node that has none, whatever its power state; not while it goes down."""
        number = self.dice.randrange(SIZE)
        name = f"{NAME}-{number}"
        node = self.slurm.ctld.nodes[name]
        if self.slurm.jobs_on(name) or "POWERING_DOWN" in node.flags:
            return
        job = self.slurm.ctld.run(name)
        if "POWERED_DOWN" in node.flags:
            job.state = {"RUNNING", "CONFIGURING"}
            self.waits[job.id] = self.now
            self._set(name, "POWERING_UP")
            self._program(number, adds=True)

    def tick(self) -> None:
        """Boots, ends of jobs, and idle nodes."""
        for number in range(SIZE):
            name = f"{NAME}-{number}"
            flags, age = self.slurm.ctld.nodes[name].flags, self.now - self.since[name]
            slurmd, jobs = self.slurm.slurmds.get(name), self.slurm.jobs_on(name)
            booted = slurmd is not None and slurmd.registered
            if "POWERING_UP" in flags:
                if booted and slurmd is not None and slurmd.started >= self._wall(name):
                    self._set(name)
                    for job in jobs:
                        self._start(job)
            elif "POWERING_DOWN" in flags:
                if age > DOWN_S:
                    self._set(name, "POWERED_DOWN")
            elif jobs and age > JOB_S:
                for job in jobs:
                    self.slurm.finish(job)
                    self.ended += 1
                self.since[name] = self.now
            elif not jobs and "POWERED_DOWN" not in flags and age > IDLE_S:
                self._set(name, "POWERING_DOWN")
                self._program(number, adds=False)

    def _wall(self, name: str) -> int:
        """When the power-up of a node was asked for, in seconds as slurmd notes its start."""
        return int(self.lab.world.true_time() - self.now + self.since[name])

    def _start(self, job: SimulatedJob) -> None:
        job.state = {"RUNNING"}
        self.slurm.ctld.touch()
        if (began := self.waits.pop(job.id, None)) is not None:
            self.longest = max(self.longest, self.now - began)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_job_that_waits_for_a_node_runs_and_no_busy_worker_goes(seed: int) -> None:
    async def run() -> None:
        lab, dice = Lab(CURRENT), random.Random(seed)
        lab.world.prepare(SPACE)
        lab.world.declare_cluster(SPACE)
        spec = {**nebius_specs.node_set(SIZE), "ephemeralNodes": True}
        spec["initialNumberEphemeralNodes"] = 0
        lab.world.make(SPACE, lab.world.plural, "NodeSet", NAME, spec)
        process = lab.world.operator()
        await lab.until(lambda: lab.find(f"{worker_sets.NEBIUS}/nodesetpowerstates", NAME))
        await lab.until(lambda: lab.phase() == "Available")
        power = PowerSaving(lab, dice)
        for second in range(600):
            if second % 150 == 100:
                assert process.failure is None
                await lab.world.crash(process)
            if second % 150 == 130:
                process = lab.world.operator()
            if second < 450 and dice.random() < 0.1:
                power.submit()
            power.tick()
            await asyncio.sleep(1)
        assert power.waits == {}
        assert power.longest < LONG_S
        assert power.ended > 5
        assert lab.world.slurm.lost_jobs == []
        await lab.until(lambda: lab.pods(NAME) == [] or power.tick())
        assert process.failure is None
        await lab.world.crash(process)
        assert lab.world.promises.broken == []

    simulate(run())
