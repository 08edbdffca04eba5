"""Plans in which a standby slurmctld is absent, so that all that Slurm is asked takes long.

Slurm resolves the names of all slurmctld before it asks any, ten times in ten seconds where one
does not resolve; a machine that is gone costs each connection its time limit. slurmrestd passes
that on: its answers are late, some later than anybody waits, and right.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

from functools import partial

from fault_plans.plan import Family, Happening
from fault_plans.random_source import Dice
from fault_plans.world import World

DELAYS_S = (1.0, 2.0, 10.2, 20.5, 90.0)
"""kube-proxy's refusal, a machine that is gone, one name and two that do not resolve, and never."""


def absent_standby(world: World, delay: float, seconds: float, which: int) -> None:
    """Each answer of slurmrestd takes that long, for so many seconds."""
    space = world.space(which)
    world.slow_answers(delay, space)
    world.later(seconds, partial(world.slow_answers, 0.0, space))


def _seconds(dice: Dice) -> float:
    return round(dice.expovariate(1 / 60), 1)


FAMILY = Family(
    "a standby that is absent for a while",
    dice=12,
    share=0.05,
    faults={
        "absent_standby": Happening(
            1, lambda d: (d.choice(DELAYS_S), _seconds(d), d.choice([0, 0, 1])), absent_standby
        ),
    },
)
