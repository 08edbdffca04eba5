"""Plans in which slurm.key changes.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from dataclasses import replace

from penstock.testing.lives import PODS
from penstock.testing.plans import lockout
from penstock.testing.plans.dice import Dice
from penstock.testing.plans.plan import Happening, Plan, Step
from penstock.testing.plans.specs import SLURM_SECRET
from penstock.testing.plans.world import World

APART = 5 << 40
"""Added to a seed for dice of its own."""
SHARE = 0.05
PATIENCE_S = 60.0
"""For so long it is waited for all pods to run; then the key stays."""


async def rekey(world: World, number: int, which: int) -> None:
    """Another slurm.key is put into its Secret, as docs/keys.md has it, while all pods run.

    What starts before the operator has seen the change reads the new key alone: a worker that does
    is not believed before slurmctld signs with it, and the change may wait for that worker.
    """
    space, key = world.space(which), f"{number}".encode() * 64
    end = world.true_time() + PATIENCE_S
    while not _all_run(world, space):
        if world.true_time() > end:
            return
        await asyncio.sleep(0.5)
    data = {"slurm.key": base64.b64encode(key).decode()}
    path = f"/api/v1/namespaces/{space}/secrets/{SLURM_SECRET}"
    if world.ask("PATCH", path, {"data": data}).status == 200:
        world.rekeyed[space] = key


def _all_run(world: World, space: str) -> bool:
    pods = world.server.objects(PODS, space)
    ready = [
        one["status"] == "True"
        for pod in pods
        for one in pod.get("status", {}).get("conditions", ())
        if one["type"] == "Ready" and "deletionTimestamp" not in pod["metadata"]
    ]
    return world.slurms[space].up and bool(world.processes) and sum(ready) == len(pods)


ROTATION = {
    "rekey": Happening(1, lambda d: (d.randint(1, 3), d.choice([0, 0, 1])), rekey),
}


def rotated(plan: Plan) -> Plan:
    """The plan, with changes of slurm.key if its seed says so."""
    dice = Dice(plan.seed + APART)
    if dice.random() >= SHARE:
        return plan
    end = max(plan.steps[-1].at, 20.0)
    more = [
        # Before there is a key there is nothing to change.
        Step(round(dice.between(5.0, end), 2), "rekey", ROTATION["rekey"].draw(dice))
        for _ in range(dice.choice([1, 1, 2]))
    ]
    steps = sorted((*plan.steps, *more), key=lambda one: one.at)
    return replace(plan, steps=tuple(steps))


def missing(world: World) -> Iterator[str]:
    """Who does not have the last slurm.key that somebody gave."""
    for space, key in world.rekeyed.items():
        yield from lockout.missing(world, key, space, forgotten=False)
