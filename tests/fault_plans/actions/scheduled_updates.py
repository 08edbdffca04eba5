"""Plans with updates in a reservation of Slurm: which have them, and what users do for it.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from fault_plans.actions.users import ACTS
from fault_plans.plan import Family, Happening, Plan, Step
from fault_plans.random_source import Dice
from fault_plans.worker_sets import SCHEDULED
from fault_plans.world import World
from penstock.api.kubernetes.meta import Json

AT_ANY_TIME: Json = {"updateStrategy": {"type": "RollingUpdate", "scheduledUpdate": None}}


def schedule(world: World, after: float, minutes: int, seconds: float, which: int) -> None:
    """From now on workers are replaced in a reservation, and a while later at any time again."""
    start = datetime.fromtimestamp(int(world.true_time() + after), UTC)
    window = {"startTime": start.strftime("%Y-%m-%dT%H:%M:%SZ"), "duration": f"{minutes}m"}
    strategy = {"type": SCHEDULED, "scheduledUpdate": window}
    world.edit_nodeset(which, {"spec": {"updateStrategy": strategy}})
    world.later(seconds, lambda: world.edit_nodeset(which, {"spec": AT_ANY_TIME}))


def _draw(plan: Plan, dice: Dice, happenings: Mapping[str, Happening]) -> Plan:
    """An update in a reservation, with changes of what it updates."""
    end = plan.steps[-1].at
    drawn = {**happenings, "template": ACTS["template"]}
    more = [
        Step(round(dice.between(0.0, end), 2), name, drawn[name].draw(dice))
        for name in ("schedule", *("template",) * dice.randint(1, 3))
    ]
    return plan.with_steps(more)


FAMILY = Family(
    "updates in a reservation",
    dice=2,
    share=0.15,
    users={
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
    },
    draw=_draw,
)
