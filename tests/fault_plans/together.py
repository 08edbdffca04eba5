"""Plans of a SlurmCluster with a second one and a Slinky cluster in its namespace.

`python -m fault_plans --together`: the plans of SlurmClusters, and what users do to the others.
"""

from __future__ import annotations

from dataclasses import replace

from fault_plans.api_names import NEIGHBOURS
from fault_plans.nebius import DRAWN_OF_NEBIUS
from fault_plans.nebius_specs import CURRENT, OLDER
from fault_plans.nebius_world import NebiusWorld
from fault_plans.plan import Happening, Layout, Plan, draw
from fault_plans.random_source import Dice

APART = 20 << 40
"""Added to a seed for dice of its own."""
RENAMES = frozenset({"recreate_cluster", "uninstall", "remake_nodeset"})
"""With them a SlurmCluster of the older shape is created again, and gets a prefix as the second."""


def scale_neighbour(world: NebiusWorld, replicas: int, which: int) -> None:
    """`kubectl scale` of another cluster of the namespace."""
    if world.neighbours[which].is_declared:
        world.neighbours[which].scale(replicas)


def recreate_neighbour(world: NebiusWorld, seconds: float, which: int) -> None:
    """Another cluster of the namespace is deleted, and declared again later."""
    one = world.neighbours[which]
    if not one.is_declared:
        return
    one.remove()

    def again() -> None:
        if one.missing():
            world.later(2.0, again)
        else:
            one.declare()

    world.later(seconds, again)


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / 30), 1)


def _which(dice: Dice) -> int:
    return dice.randrange(len(NEIGHBOURS))


TOGETHER = {
    "scale_neighbour": Happening(8, lambda d: (d.randint(1, 2), _which(d)), scale_neighbour),
    "recreate_neighbour": Happening(6, lambda d: (_while(d), _which(d)), recreate_neighbour),
}
"""What users do besides."""
_DRAWN = {**DRAWN_OF_NEBIUS, **TOGETHER}
_OF_OLDER = {name: one for name, one in _DRAWN.items() if name not in RENAMES}


def together_of(seed: int) -> Plan:
    """The plan of a seed."""
    shape = Dice(seed + APART + 1).choice([OLDER, CURRENT])
    plan = draw(seed + APART, _OF_OLDER if shape == OLDER else _DRAWN)
    layout = Layout(nebius=shape, together=True, leased=plan.layout.leased)
    return replace(plan, layout=layout)
