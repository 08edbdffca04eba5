"""Plans with Tokens: which have them, and what users do to them and to the key that signs them.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from fault_plans.actions.users import again
from fault_plans.kinds import path_of
from fault_plans.plan import Family, Happening, Plan, crowded
from fault_plans.random_source import Dice
from fault_plans.specs import JWT_SECRET, USER
from fault_plans.world import World

SECRET = f"{USER}-jwt-{USER}"
LIFETIMES = ("90s", "5m", "15m")


def edit_token(world: World, text: str, which: int) -> None:
    """`kubectl edit` of a Token's Secret."""
    data = {"SLURM_JWT": base64.b64encode(text.encode()).decode()}
    world.ask("PATCH", _secret(world, SECRET, which), {"data": data})


def delete_token(world: World, which: int) -> None:
    """`kubectl delete` of a Token's Secret."""
    world.ask("DELETE", _secret(world, SECRET, which), {})


def lifetime(world: World, text: str, which: int) -> None:
    """A change of how long a token lives."""
    world.edit(world.space(which), "tokens", USER, {"lifetime": text})


def remake_token(world: World, seconds: float, which: int) -> None:
    """`kubectl delete token`, and another one later."""
    space = world.space(which)
    world.ask("DELETE", path_of(space, "tokens", USER), {})
    again(world, seconds, ("tokens", space, USER), partial(world.declare_token, space))


def rekey_jwt(world: World, number: int, which: int) -> None:
    """Another jwt.key: one that is given, or one that is made since the former was deleted."""
    path = _secret(world, JWT_SECRET, which)
    if number:
        data = {"jwt.key": base64.b64encode(f"{number}".encode() * 32).decode()}
        world.ask("PATCH", path, {"data": data})
    else:
        world.ask("DELETE", path, {})


def _secret(world: World, name: str, which: int) -> str:
    return f"/api/v1/namespaces/{world.space(which)}/secrets/{name}"


def _which(dice: Dice) -> int:
    return dice.choice([0, 0, 1])


def _draw(plan: Plan, dice: Dice, happenings: Mapping[str, Happening]) -> Plan:
    layout = replace(plan.layout, tokens=True)
    return crowded(replace(plan, layout=layout), dice, happenings)


FAMILY = Family(
    "Tokens",
    dice=4,
    share=0.1,
    users={
        "edit_token": Happening(2, lambda d: (d.choice(["", "no token"]), _which(d)), edit_token),
        "delete_token": Happening(2, lambda d: (_which(d),), delete_token),
        "lifetime": Happening(2, lambda d: (d.choice(LIFETIMES), _which(d)), lifetime),
        "remake_token": Happening(
            1, lambda d: (round(d.expovariate(1 / 30), 1), _which(d)), remake_token
        ),
        "rekey_jwt": Happening(2, lambda d: (d.randrange(4), _which(d)), rekey_jwt),
    },
    draw=_draw,
)
