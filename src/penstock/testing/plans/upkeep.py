"""Plans with updates in a reservation of Slurm: which have them, and what users do for it.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from penstock.api.meta import Json
from penstock.testing.plans.acts import ACTS
from penstock.testing.plans.dice import Dice
from penstock.testing.plans.plan import Happening, Plan, Step
from penstock.testing.plans.reserved import SCHEDULED
from penstock.testing.plans.world import World

APART = 2 << 40
"""Added to a seed for dice of its own."""
SHARE = 0.15
AT_ANY_TIME: Json = {"updateStrategy": {"type": "RollingUpdate", "scheduledUpdate": None}}


def schedule(world: World, after: float, minutes: int, seconds: float, which: int) -> None:
    """From now on workers are replaced in a reservation, and a while later at any time again."""
    start = datetime.fromtimestamp(int(world.true_time() + after), UTC)
    window = {"startTime": start.strftime("%Y-%m-%dT%H:%M:%SZ"), "duration": f"{minutes}m"}
    strategy = {"type": SCHEDULED, "scheduledUpdate": window}
    world.edit_nodeset(which, {"spec": {"updateStrategy": strategy}})
    world.later(seconds, lambda: world.edit_nodeset(which, {"spec": AT_ANY_TIME}))


UPKEEP = {
    "schedule": Happening(
        1,
        lambda d: (
            d.choice([0.0, 5.0, 20.0, 90.0]),
            d.choice([1, 2, 10]),
            round(d.between(20.0, 300.0), 1),
            d.choice([0, 0, 1]),
        ),
        schedule,
    ),
}


def scheduled(plan: Plan) -> Plan:
    """The plan, with updates in a reservation if its seed says so."""
    dice = Dice(plan.seed + APART)
    if dice.random() >= SHARE:
        return plan
    end = plan.steps[-1].at
    drawn = {"schedule": UPKEEP["schedule"], "template": ACTS["template"]}
    steps = [
        Step(round(dice.between(0.0, end), 2), name, drawn[name].draw(dice))
        for name in ("schedule", *("template",) * dice.randint(1, 3))
    ]
    return replace(plan, steps=tuple(sorted((*plan.steps, *steps), key=lambda one: one.at)))
