"""Plans in which Slurm's nodes are unknown while its jobs are known, or its state is lost.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.testing.faults import Fault
from penstock.testing.kubelet import MISSING
from penstock.testing.plans.acts import ACTS
from penstock.testing.plans.dice import Dice
from penstock.testing.plans.mishaps import MISHAPS, restart_slurmctld
from penstock.testing.plans.plan import Happening, Plan, Step
from penstock.testing.plans.world import World

APART = 7 << 40
"""Added to a seed for dice of its own."""
SHARE = 0.15


def unknown_nodes(world: World, seconds: float, which: int) -> None:
    """For a while slurmrestd answers with an error to whoever asks for nodes, and lists jobs."""
    space = world.space(which)
    world.slurm_fault(Fault.NODES_FAIL, space)
    world.later(seconds, lambda: world.slurm_fault(Fault.NONE, space))


async def lose_state(world: World, seconds: float, which: int) -> None:
    """Slurmctld starts without its state: its workers run on, and none registers by itself."""
    await restart_slurmctld(world, seconds, "all", which)


FORGOTTEN = {
    "unknown_nodes": Happening(
        2, lambda d: (round(d.expovariate(1 / 40), 1), d.choice([0, 0, 1])), unknown_nodes
    ),
    "lose_state": Happening(
        2, lambda d: (round(d.expovariate(1 / 8), 1), d.choice([0, 0, 1])), lose_state
    ),
}


def forgetful(plan: Plan) -> Plan:
    """The plan, with nodes that are unknown or forgotten if its seed says so.

    A third of these begin with an image that does not exist: a first cluster that lists no nodes.
    The others are shown a template that cannot start, or a kubelet that falls silent, meanwhile.
    """
    dice = Dice(plan.seed + APART)
    if dice.random() >= SHARE:
        return plan
    end = plan.steps[-1].at
    steps = [
        Step(round(dice.between(0.0, end), 2), name, FORGOTTEN[name].draw(dice))
        for name in dice.choices(list(FORGOTTEN), k=dice.randint(1, 3))
    ]
    broken = Step(0.0, "template", (MISSING, round(dice.between(20.0, 200.0), 1), 0))
    if dice.random() < 1 / 3:
        steps.append(broken)
    else:
        at = round(dice.between(0.0, end), 2)
        steps.append(replace(broken, at=at))
        steps.append(Step(at, "kubelet", MISHAPS["kubelet"].draw(dice)))
    if dice.random() < 0.5:
        at = round(dice.between(0.0, end), 2)
        steps.append(Step(at, "scale", ACTS["scale"].draw(dice)))
    return replace(plan, steps=tuple(sorted((*plan.steps, *steps), key=lambda one: one.at)))
