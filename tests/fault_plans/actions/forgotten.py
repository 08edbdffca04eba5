"""Plans in which Slurm's nodes are unknown while its jobs are known, or its state is lost.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fault_plans.actions.faults import MISHAPS, restart_slurmctld
from fault_plans.actions.users import ACTS
from fault_plans.plan import Family, Happening, Plan, Step
from fault_plans.random_source import Dice
from fault_plans.world import World
from penstock.simulation.faults import Fault
from penstock.simulation.kubelet.kubelet import MISSING


def unknown_nodes(world: World, seconds: float, which: int) -> None:
    """For a while slurmrestd answers with an error to whoever asks for nodes, and lists jobs."""
    space = world.space(which)
    world.slurm_fault(Fault.NODES_FAIL, space)
    world.later(seconds, lambda: world.slurm_fault(Fault.NONE, space))


async def lose_state(world: World, seconds: float, which: int) -> None:
    """Slurmctld starts without its state: its workers run on, and none registers by itself."""
    await restart_slurmctld(world, seconds, "all", which)


def _draw(plan: Plan, dice: Dice, happenings: Mapping[str, Happening]) -> Plan:
    """A plan with nodes that are unknown or forgotten.

    A third of these begin with an image that does not exist: a first cluster that lists no nodes.
    The others are shown a template that cannot start, or a kubelet that falls silent, meanwhile.
    """
    end = plan.steps[-1].at
    steps = [
        Step(round(dice.between(0.0, end), 2), name, happenings[name].draw(dice))
        for name in dice.choices(list(happenings), k=dice.randint(1, 3))
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
    return plan.with_steps(steps)


FAMILY = Family(
    "nodes that are unknown or forgotten",
    dice=7,
    share=0.15,
    faults={
        "unknown_nodes": Happening(
            2, lambda d: (round(d.expovariate(1 / 40), 1), d.choice([0, 0, 1])), unknown_nodes
        ),
        "lose_state": Happening(
            2, lambda d: (round(d.expovariate(1 / 8), 1), d.choice([0, 0, 1])), lose_state
        ),
    },
    draw=_draw,
)
