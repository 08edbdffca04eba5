"""Power saving over a while: jobs come, programs fail, and the operator ends and starts again."""

from __future__ import annotations

import asyncio
import random

import pytest

from fault_plans import nebius_specs, worker_sets
from fault_plans.actions.power import PowerSaving
from penstock.simulation.event_loop import simulate
from unit.controllers.nebius.lab import CURRENT, SPACE, Lab

NAME, SIZE, JOB_S = "compute", 3, 10.0
LONG_S = 300.0
"""Far more than two starts of a worker and an operator that is away."""


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
        power = PowerSaving(lab.world, SPACE, NAME, SIZE)
        for second in range(600):
            if second % 150 == 100:
                assert process.failure is None
                await lab.world.crash(process)
            if second % 150 == 130:
                process = lab.world.operator()
            if second < 450 and dice.random() < 0.1:
                power.submit(JOB_S)
            # A call of Slurm's programs fails now and then, as while the API server is away.
            power.calls_lost = dice.random() < 0.3
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
