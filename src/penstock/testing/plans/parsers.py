"""Plans in which slurmrestd is an older one, or its data parser lacks a field.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.slurm.versions import PARSERS
from penstock.testing.plans.dice import Dice
from penstock.testing.plans.plan import Happening, Plan, Step
from penstock.testing.plans.world import World

APART = 7 << 40
"""Added to a seed for dice of its own."""
SHARE = 0.1
FIELDS = (
    ("nodes", "state"),
    ("nodes", "reason"),
    ("nodes", "comment"),
    ("nodes", "features"),
    ("nodes", "active_features"),
    ("nodes", "weight"),
    ("nodes", "gres"),
    ("nodes", "topology"),
    ("nodes", "slurmd_start_time"),
    ("jobs", "nodes"),
    ("jobs", "job_state"),
    ("partitions", "flags"),
    ("partitions", "nodes"),
    ("partitions", "partition.state"),
    ("partitions", "maximums"),
    ("partitions", "priority.tier"),
    ("partitions", "preempt_mode"),
)


def older(world: World, parser: str, seconds: float, which: int) -> None:
    """An older slurmrestd answers for a while: it offers no better data parser than this one."""
    slurm = world.slurms[world.space(which)].ctld
    slurm.newest_parser = parser
    world.later(seconds, lambda: setattr(slurm, "newest_parser", ""))


def lacking(world: World, what: str, field: str, seconds: float, which: int) -> None:
    """Replies lack a field for a while."""
    slurm = world.slurms[world.space(which)].ctld
    slurm.lacks = (what, field)
    world.later(seconds, lambda: setattr(slurm, "lacks", None))


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / dice.choice([10, 60, 600])), 1)


PARSERS_CHANGE = {
    "older_slurmrestd": Happening(
        1,
        lambda d: (d.choice(list(PARSERS)[1:]), _while(d), d.choice([0, 0, 1])),
        older,
    ),
    "lacking": Happening(
        1, lambda d: (*d.choice(FIELDS), min(_while(d), 60.0), d.choice([0, 0, 1])), lacking
    ),
}


def parsed(plan: Plan) -> Plan:
    """The plan, with older and lacking data parsers if its seed says so."""
    dice = Dice(plan.seed + APART)
    if dice.random() >= SHARE:
        return plan
    end = max(plan.steps[-1].at, 20.0)
    names = [dice.choice(list(PARSERS_CHANGE)) for _ in range(dice.choice([1, 2, 3]))]
    more = [
        Step(round(dice.between(0.0, end), 2), name, PARSERS_CHANGE[name].draw(dice))
        for name in names
    ]
    steps = sorted((*plan.steps, *more), key=lambda one: one.at)
    return replace(plan, steps=tuple(steps))
