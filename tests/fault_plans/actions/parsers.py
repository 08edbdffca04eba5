"""Plans in which slurmrestd is an older one, or its data parser lacks a field.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

from collections.abc import Mapping

from fault_plans.plan import Family, Happening, Plan, Step
from fault_plans.random_source import Dice
from fault_plans.world import World
from penstock.slurm.versions import NEW_NODE_SINCE, PARSERS

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
    slurm.had_no_node_calls |= PARSERS[parser] < NEW_NODE_SINCE
    world.later(seconds, lambda: setattr(slurm, "newest_parser", ""))


def lacking(world: World, what: str, field: str, seconds: float, which: int) -> None:
    """Replies lack a field for a while."""
    slurm = world.slurms[world.space(which)].ctld
    slurm.lacks = (what, field)
    world.later(seconds, lambda: setattr(slurm, "lacks", None))


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / dice.choice([10, 60, 600])), 1)


def _draw(plan: Plan, dice: Dice, happenings: Mapping[str, Happening]) -> Plan:
    end = max(plan.steps[-1].at, 20.0)
    names = [dice.choice(list(happenings)) for _ in range(dice.choice([1, 2, 3]))]
    more = [
        Step(round(dice.between(0.0, end), 2), name, happenings[name].draw(dice)) for name in names
    ]
    return plan.with_steps(more)


FAMILY = Family(
    "older and lacking data parsers",
    dice=7,  # Also those of nodes that are forgotten: another number would change its plans.
    share=0.1,
    faults={
        "older_slurmrestd": Happening(
            1,
            lambda d: (d.choice(list(PARSERS)[1:]), _while(d), d.choice([0, 0, 1])),
            older,
        ),
        "lacking": Happening(
            1, lambda d: (*d.choice(FIELDS), min(_while(d), 60.0), d.choice([0, 0, 1])), lacking
        ),
    },
    draw=_draw,
)
