"""Plans in which the operator waits for a core: time passes while it decides.

A reconcile takes no simulated time otherwise, so what comes due within one would never be met. They
are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

from fault_plans.plan import Family, Happening
from fault_plans.random_source import Dice
from fault_plans.world import World


def busy(world: World, seconds: float, longest: float) -> None:
    """For a while some of the readings of the operator's clock take up to `longest` seconds."""
    world.longest_hesitation = longest
    world.later(seconds, lambda: setattr(world, "longest_hesitation", 0.0))


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / dice.choice([10, 60, 600])), 1)


FAMILY = Family(
    "an operator that waits for a core",
    dice=44,
    share=0.15,
    faults={"busy": Happening(1, lambda d: (_while(d), d.choice([0.1, 0.5, 2.0])), busy)},
)
