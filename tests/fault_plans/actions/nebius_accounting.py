"""Accounting of SlurmClusters in plans: which have it, and what happens to it.

It is drawn by dice of its own, so a seed has the same other steps as without it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fault_plans import nebius_specs as specs
from fault_plans.actions import accounting as records
from fault_plans.api_names import CLUSTER
from fault_plans.nebius_world import NebiusWorld
from fault_plans.plan import Happening, Plan, crowded
from fault_plans.random_source import Dice
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.simulation.kubelet.pod_lifecycle import PODS, app_of

SHARE = 0.4
DATABASE_LATE = 0.3
"""Of the plans with accounting, those whose database is away when the cluster is declared."""


def _objects(world: NebiusWorld) -> tuple[str, ...]:
    return (
        f"/api/v1|secrets/{names.slurmdbd_configs(CLUSTER)}",
        f"/api/v1|services/{names.service(CLUSTER, 'accounting')}",
        f"/apis/apps/v1|deployments/{world.prefix}accounting",
    )


EDITS: tuple[Json, ...] = (
    {"data": {"slurmdbd.conf": "Ym9ndXM="}},
    {"spec": {"selector": {"nobody": "here"}}},
    {"spec": {"replicas": 0}},
)
"""Of these objects, in their order."""


def _path(world: NebiusWorld, number: int, which: int) -> str:
    group, _, path = _objects(world)[number].partition("|")
    return f"{group}/namespaces/{world.space(which)}/{path}"


def edit_records(world: NebiusWorld, number: int, which: int) -> None:
    """`kubectl edit` of something that is slurmdbd's."""
    world.ask("PATCH", _path(world, number, which), EDITS[number])


def delete_records(world: NebiusWorld, number: int, which: int) -> None:
    """`kubectl delete` of something that is slurmdbd's."""
    world.ask("DELETE", _path(world, number, which), {})


def tune_records(world: NebiusWorld, number: int, which: int) -> None:
    """A change of slurmdbd.conf."""
    accounting = {"slurmdbdConfig": {"tcpTimeout": number}}
    world.edit_cluster(world.space(which), {"slurmNodes": {"accounting": accounting}})


def switch_records(world: NebiusWorld, seconds: float, which: int, *, ends_on: bool) -> None:
    """Accounting is switched off and on again later, or the other way round."""
    space = world.space(which)

    def switch(on: bool) -> None:
        accounting = specs.accounting(enabled=on)
        world.edit_cluster(space, {"slurmNodes": {"accounting": accounting}})

    switch(not ends_on)
    world.later(seconds, partial(switch, ends_on))


def kill_slurmdbd(world: NebiusWorld, which: int) -> None:
    """The pod of slurmdbd is gone at once."""
    space = world.space(which)
    for pod in world.server.objects(PODS, space):
        if app_of(pod) == "slurmdbd":
            path = f"/api/v1/namespaces/{space}/pods/{pod['metadata']['name']}"
            world.ask("DELETE", path, {"gracePeriodSeconds": 0})


def _off_and_on(world: NebiusWorld, seconds: float, which: int) -> None:
    switch_records(world, seconds, which, ends_on=True)


def _on_and_off(world: NebiusWorld, seconds: float, which: int) -> None:
    switch_records(world, seconds, which, ends_on=False)


def _which(dice: Dice) -> int:
    return dice.choice([0, 0, 1])


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / 30), 1)


USERS = {
    "password": records.FAMILY.users["password"],
    "tune_records": Happening(3, lambda d: (d.randint(3, 9), _which(d)), tune_records),
    "records_off": Happening(4, lambda d: (_while(d), _which(d)), _off_and_on),
    "records_on": Happening(4, lambda d: (_while(d), _which(d)), _on_and_off),
    "edit_records": Happening(3, lambda d: (d.randrange(len(EDITS)), _which(d)), edit_records),
    "delete_records": Happening(3, lambda d: (d.randrange(len(EDITS)), _which(d)), delete_records),
}
FAULTS = {
    **records.FAMILY.faults,
    "kill_slurmdbd": Happening(4, lambda d: (_which(d),), kill_slurmdbd),
}


def added(plan: Plan, dice: Dice) -> Plan:
    """The plan with accounting, in a share of plans."""
    if dice.random() >= SHARE:
        return plan
    layout = replace(plan.layout, accounted=dice.random() < 0.7)
    found = crowded(replace(plan, layout=layout), dice, {**USERS, **FAULTS})
    if dice.random() >= DATABASE_LATE:
        return found
    late = FAULTS["database"]
    step = replace(found.steps[0], at=0.0, name="database", values=late.draw(dice))
    return found.with_steps([step])
