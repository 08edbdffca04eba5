"""Plans with claims and pins: which have them, and what users do to them.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fault_plans.plan import LARGEST, Family, Happening, Plan, Step
from fault_plans.promises.pvc import DELETE, RETAIN
from fault_plans.random_source import Dice
from fault_plans.worker_sets import POLICY
from fault_plans.world import World
from penstock.simulation.kubelet.pvc import PODS, pvcs_of

SHARE_OF_CLAIMS, SHARE_OF_PINS = 0.2, 0.15


def delete_claim(world: World, number: int) -> None:
    """`kubectl delete pvc`: it goes with the pod that has it, and the next pod gets a new one."""
    space, name = world.worker(number)
    pod = world.find(PODS, name, space)
    for claim in pvcs_of(pod) if pod is not None else ():
        world.ask("DELETE", f"/api/v1/namespaces/{space}/persistentvolumeclaims/{claim}", {})


def retain(world: World, scaled: str, deleted: str, which: int) -> None:
    """A change of what becomes of claims."""
    policy = {"whenScaled": scaled, "whenDeleted": deleted}
    world.edit_nodeset(which, {"spec": {POLICY: policy}})


def pin(world: World, on: bool, which: int) -> None:
    """A change of `pinToNode`."""
    world.edit_nodeset(which, {"spec": {"pinToNode": on}})


def _draw(plan: Plan, dice: Dice, happenings: Mapping[str, Happening]) -> Plan:
    """Claims, pins, both or neither, each as often as its share says."""
    claims = dice.random() < SHARE_OF_CLAIMS
    pins = dice.random() < SHARE_OF_PINS
    if not claims and not pins:
        return plan
    policy = (dice.choice([RETAIN, DELETE]), dice.choice([RETAIN, DELETE]))
    layout = replace(plan.layout, claims=policy if claims else None, pinned=pins)
    names = [*(("delete_claim", "retain") if claims else ()), *(("pin",) if pins else ())]
    end = plan.steps[-1].at
    more: list[Step] = []
    for _ in range(dice.randint(0, 3)):
        name = dice.choice(names)
        more.append(Step(round(dice.between(0.0, end), 2), name, happenings[name].draw(dice)))
    return replace(plan, layout=layout).with_steps(more)


FAMILY = Family(
    "claims and pins",
    dice=1,
    share=None,
    users={
        "delete_claim": Happening(
            1, lambda d: (d.randrange(LARGEST) + LARGEST * d.choice([0, 0, 1]),), delete_claim
        ),
        "retain": Happening(
            1,
            lambda d: (d.choice([RETAIN, DELETE]), d.choice([RETAIN, DELETE]), d.choice([0, 0, 1])),
            retain,
        ),
        "pin": Happening(1, lambda d: (d.random() < 0.5, d.choice([0, 0, 1])), pin),
    },
    draw=_draw,
)
