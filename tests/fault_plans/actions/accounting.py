"""Plans with an Accounting: which have one, and what happens to it.

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
from fault_plans.specs import DATABASE, RECORDS
from fault_plans.world import World
from penstock.api.kubernetes.meta import Json

WORKLOAD = f"{RECORDS}-accounting"
DELETIONS = (
    ("/api/v1", f"pods/{WORKLOAD}-0"),
    ("/api/v1", f"secrets/{WORKLOAD}"),
    ("/api/v1", f"services/{WORKLOAD}"),
    ("/apis/apps/v1", f"statefulsets/{WORKLOAD}"),
)
EDITS: tuple[tuple[str, str, Json], ...] = (
    ("/api/v1", f"secrets/{WORKLOAD}", {"data": {"slurmdbd.conf": "Ym9ndXM="}}),
    ("/api/v1", f"services/{WORKLOAD}", {"spec": {"selector": {"nobody": "here"}}}),
    ("/apis/apps/v1", f"statefulsets/{WORKLOAD}", {"spec": {"replicas": 0}}),
)


def password(world: World, number: int, which: int) -> None:
    """The password of the database changes."""
    space = world.space(which)
    data = {"password": base64.b64encode(f"secret-{number}".encode()).decode()}
    world.ask("PATCH", f"/api/v1/namespaces/{space}/secrets/{DATABASE}", {"data": data})


def tune(world: World, number: int, which: int) -> None:
    """A change of slurmdbd.conf."""
    line = f"CommitDelay={number}\n" if number else ""
    world.edit(world.space(which), "accountings", RECORDS, {"extraConf": line})


def mistune(world: World, number: int, seconds: float, which: int) -> None:
    """A change of slurmdbd.conf that slurmdbd refuses, put right a while later."""
    space, line = world.space(which), f"BogusKey={number}\n"
    world.edit(space, "accountings", RECORDS, {"extraConf": line})
    world.later(seconds, partial(tune, world, number, which))


def remake_accounting(world: World, seconds: float, which: int) -> None:
    """`kubectl delete accounting`, and another one later."""
    space = world.space(which)
    world.ask("DELETE", path_of(space, "accountings", RECORDS), {})
    of = ("accountings", space, RECORDS)
    again(world, seconds, of, partial(world.declare_accounting, space))


def leave_accounting(world: World, seconds: float, which: int) -> None:
    """The Controller names no Accounting for a while."""
    path = path_of(world.space(which), "controllers", "slurm")

    def name(ref: Json | None) -> None:
        world.ask("PATCH", path, {"spec": {"accountingRef": ref}})

    name(None)
    world.later(seconds, partial(name, {"name": RECORDS}))


def edit_slurmdbd(world: World, number: int, which: int) -> None:
    """`kubectl edit` of something that is slurmdbd's."""
    group, path, body = EDITS[number]
    world.ask("PATCH", f"{group}/namespaces/{world.space(which)}/{path}", body)


def delete_slurmdbd(world: World, number: int, which: int) -> None:
    """`kubectl delete` of something that is slurmdbd's."""
    group, path = DELETIONS[number]
    world.ask("DELETE", f"{group}/namespaces/{world.space(which)}/{path}", {})


def database(world: World, seconds: float, which: int) -> None:
    """The database does not answer for a while."""
    space = world.space(which)
    world.machines.database(space, answers=False)
    world.later(seconds, partial(world.machines.database, space, answers=True))


def empty_database(world: World, which: int) -> None:
    """The database is replaced by an empty one: slurmdbd does not have the cluster any more."""
    world.slurms[world.space(which)].ctld.registered = False


def deaf_slurmdbd(world: World, seconds: float, which: int) -> None:
    """Slurmdbd's container does not look at its files for a while."""
    space, deaf = world.space(which), world.machines.slurmdbds.deaf
    deaf.add(space)
    world.later(seconds, partial(deaf.discard, space))


def _which(dice: Dice) -> int:
    return dice.choice([0, 0, 1])


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / 30), 1)


def _draw(plan: Plan, dice: Dice, happenings: Mapping[str, Happening]) -> Plan:
    layout = replace(plan.layout, accounted=True)
    return crowded(replace(plan, layout=layout), dice, happenings)


FAMILY = Family(
    "an Accounting",
    dice=3,
    share=0.12,
    users={
        "password": Happening(4, lambda d: (d.randint(1, 9), _which(d)), password),
        "tune": Happening(3, lambda d: (d.randint(0, 9), _which(d)), tune),
        "mistune": Happening(3, lambda d: (d.randint(1, 9), _while(d), _which(d)), mistune),
        "remake_accounting": Happening(3, lambda d: (_while(d), _which(d)), remake_accounting),
        "leave_accounting": Happening(3, lambda d: (_while(d), _which(d)), leave_accounting),
        "edit_slurmdbd": Happening(
            3, lambda d: (d.randrange(len(EDITS)), _which(d)), edit_slurmdbd
        ),
        "delete_slurmdbd": Happening(
            3, lambda d: (d.randrange(len(DELETIONS)), _which(d)), delete_slurmdbd
        ),
    },
    faults={
        "database": Happening(3, lambda d: (2 * _while(d), _which(d)), database),
        "empty_database": Happening(2, lambda d: (_which(d),), empty_database),
        "deaf_slurmdbd": Happening(3, lambda d: (2 * _while(d), _which(d)), deaf_slurmdbd),
    },
    draw=_draw,
)
