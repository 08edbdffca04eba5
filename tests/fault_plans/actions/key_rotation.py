"""Plans in which slurm.key changes.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Mapping

from fault_plans.plan import Family, Happening, Plan, Step
from fault_plans.promises import auth_keys as lockout
from fault_plans.random_source import Dice
from fault_plans.specs import SLURM_SECRET
from fault_plans.world import World
from penstock.simulation.kubelet.pod_lifecycle import PODS

PATIENCE_S = 60.0
"""For so long it is waited for all pods to run; then the key stays."""


async def rekey(world: World, number: int, which: int) -> None:
    """Another slurm.key is put into its Secret, as docs/admin/keys.md has it, while all pods run.

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


def _draw(plan: Plan, dice: Dice, happenings: Mapping[str, Happening]) -> Plan:
    end = max(plan.steps[-1].at, 20.0)
    more = [
        # Before there is a key there is nothing to change.
        Step(round(dice.between(5.0, end), 2), "rekey", happenings["rekey"].draw(dice))
        for _ in range(dice.choice([1, 1, 2]))
    ]
    return plan.with_steps(more)


FAMILY = Family(
    "changes of slurm.key",
    dice=5,
    share=0.05,
    users={"rekey": Happening(1, lambda d: (d.randint(1, 3), d.choice([0, 0, 1])), rekey)},
    draw=_draw,
)


def missing(world: World) -> Iterator[str]:
    """Who does not have the last slurm.key that somebody gave."""
    for space, key in world.rekeyed.items():
        yield from lockout.missing(world, key, space, forgotten=False)
