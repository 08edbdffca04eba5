"""Plans in which leadership is lost in the middle of a write to Slurm.

A process stands still when it is connected to slurmrestd and about to send a change, until after
another one has taken the Lease. They are drawn by dice of their own, so a seed has the same steps
as it would without.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fault_plans.actions.faults import standby
from fault_plans.plan import Family, Happening, Plan, Step
from fault_plans.process import Process
from fault_plans.random_source import Dice
from fault_plans.world import World

FORGOTTEN_S = 60.0
"""After which a process that has written nothing to Slurm goes on undisturbed."""


def pause_at_write(world: World, seconds: float) -> None:
    """The process that leads stands still at its next write to Slurm, for longer than a Lease."""
    standby(world)
    for process in world.processes[:1]:
        process.pauses_for = seconds
        world.later(FORGOTTEN_S, partial(_go_on, process))


def _go_on(process: Process) -> None:
    process.pauses_for = 0.0


def _draw(plan: Plan, dice: Dice, happenings: Mapping[str, Happening]) -> Plan:
    """Where processes take turns by a Lease, the leader is deposed while it writes to Slurm."""
    if not plan.layout.leased:
        return plan
    end = max(plan.steps[-1].at, 20.0)
    draw = happenings["pause_at_write"].draw
    more = [
        Step(round(dice.between(5.0, end), 2), "pause_at_write", draw(dice))
        for _ in range(dice.choice([1, 1, 2]))
    ]
    return plan.with_steps(more)


FAMILY = Family(
    "a leader that is deposed while it writes to Slurm",
    dice=17,
    share=0.3,
    faults={
        "pause_at_write": Happening(
            1, lambda d: (round(d.between(16.0, 40.0), 1),), pause_at_write
        ),
    },
    draw=_draw,
)
