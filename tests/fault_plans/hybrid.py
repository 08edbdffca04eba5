"""Plans of clusters whose slurmctld is external: the operator has workers and slurmrestd only.

slurmctld has no pod, so it goes on whatever becomes of its Controller. Plans of these clusters are
drawn apart, with what can happen to them: `python -m fault_plans --external`.
"""

from __future__ import annotations

from dataclasses import replace

from fault_plans.actions.faults import MISHAPS
from fault_plans.actions.users import ACTS, again
from fault_plans.kinds import path_of
from fault_plans.plan import Happening, Plan, draw
from fault_plans.random_source import Dice
from fault_plans.world import World

APART = 16 << 40
"""Added to a seed for dice of its own."""
NOT_OF_IT = frozenset({"configure", "misconfigure", "limit", "reconfigure", "sidecar"})
"""What is about files of a slurmctld of ours."""


def remake_controller(world: World, seconds: float, which: int) -> None:
    """`kubectl delete controller`, and the same one again later: slurmctld goes on meanwhile."""
    space = world.space(which)
    world.ask("DELETE", path_of(space, "controllers", "slurm"), {})
    again(
        world,
        seconds,
        ("controllers", space, "slurm"),
        lambda: world.declare_controller(space),
    )


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / 30), 1)


HYBRID = {
    "remake_controller": Happening(
        6, lambda d: (_while(d), d.choice([0, 0, 1])), remake_controller
    ),
}
"""What users do besides."""
_DRAWN = {name: one for name, one in {**ACTS, **MISHAPS, **HYBRID}.items() if name not in NOT_OF_IT}


def external_of(seed: int) -> Plan:
    """The plan of a seed, of clusters with an external slurmctld."""
    plan = draw(seed + APART, _DRAWN)
    return replace(plan, layout=replace(plan.layout, external=True))
