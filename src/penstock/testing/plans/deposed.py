"""Plans in which leadership is lost in the middle of a write to Slurm.

A process stands still when it is connected to slurmrestd and about to send a change, until after
another one has taken the Lease. They are drawn by dice of their own, so a seed has the same steps
as it would without.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from penstock.testing.plans.dice import Dice
from penstock.testing.plans.mishaps import standby
from penstock.testing.plans.plan import Happening, Plan, Step
from penstock.testing.plans.process import Process
from penstock.testing.plans.world import World

APART = 17 << 40
"""Added to a seed for dice of its own."""
SHARE = 0.3
"""Of the plans whose processes take turns by a Lease."""
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


DEPOSED = {
    "pause_at_write": Happening(1, lambda d: (round(d.between(16.0, 40.0), 1),), pause_at_write),
}


def deposed(plan: Plan) -> Plan:
    """The plan, with a leader that is deposed while it writes to Slurm if its seed says so."""
    dice = Dice(plan.seed + APART)
    if not plan.layout.leased or dice.random() >= SHARE:
        return plan
    end = max(plan.steps[-1].at, 20.0)
    draw = DEPOSED["pause_at_write"].draw
    more = [
        Step(round(dice.between(5.0, end), 2), "pause_at_write", draw(dice))
        for _ in range(dice.choice([1, 1, 2]))
    ]
    return replace(plan, steps=tuple(sorted((*plan.steps, *more), key=lambda one: one.at)))
