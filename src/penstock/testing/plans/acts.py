"""What people do: users of Slurm, administrators of Slurm and of Kubernetes."""

from __future__ import annotations

import asyncio

from penstock.api.slinky.wellknown import POD_CORDON, POD_CORDON_SHORT
from penstock.testing.kubelet import MISSING
from penstock.testing.plans.dice import Dice
from penstock.testing.plans.plan import LARGEST, Happening
from penstock.testing.plans.world import CORE, GROUP, NODESET, SPACE, World
from penstock.testing.slurmctld import FakeJob

IMAGES = ("slurmd:1", "slurmd:2")
REASONS = ("bad disk", "Manual maintenance", "", "Not responding to my calls")
EDITS = (
    (f"{CORE}/services/slurm-controller", {"spec": {"selector": {"nobody": "here"}}}),
    (f"{CORE}/configmaps/slurm-config-slurm", {"data": {"slurm.conf": "nonsense"}}),
    (f"/apis/apps/v1/namespaces/{SPACE}/deployments/slurm-restapi", {"spec": {"replicas": 0}}),
    (f"{CORE}/services/slurm-workers-slurm", {"spec": {"publishNotReadyAddresses": False}}),
)
DELETIONS = (
    f"{CORE}/services/slurm-controller",
    f"{CORE}/configmaps/slurm-config-slurm",
    f"{CORE}/pods/slurm-controller-0",
    f"{CORE}/pods/slurm-restapi-0",
    f"/apis/apps/v1/namespaces/{SPACE}/deployments/slurm-restapi",
)


def scale(world: World, replicas: int) -> None:
    """`kubectl scale`."""
    world.scale(replicas)


def job(world: World, width: int, seconds: float) -> None:
    """A user's job, as soon as nodes are free."""
    found = world.slurm.submit(width)
    if found is None:
        world.later(1.0, lambda: world.slurm.submit(width) and None)
        return
    world.later(seconds, lambda: world.slurm.finish(found))


def fill(world: World, seconds: float) -> None:
    """Jobs on all free nodes."""
    while world.slurm.free_nodes():
        job(world, 1, seconds)


async def crowd(world: World, seconds: float, length: float) -> None:
    """Jobs wait for nodes: for so long, one begins the moment a node is free."""
    end = world.true_time() + seconds
    while world.true_time() < end and not world.healed:
        fill(world, world.dice.between(0.5, 1.5) * length)
        await asyncio.sleep(0.3)


def suspend(world: World, seconds: float) -> None:
    """An administrator suspends all jobs for a while; Slurm shows their nodes IDLE then."""
    for one in world.slurm.running():
        world.slurm.change(one, "SUSPENDED")
        world.later(seconds, lambda one=one: _resume(world, one))


def _resume(world: World, one: FakeJob) -> None:
    if "SUSPENDED" in one.state:
        world.slurm.change(one, "RUNNING")


def drain(world: World, ordinal: int, reason: str) -> None:
    """`scontrol update nodename=... state=drain reason=...`."""
    world.slurm.drained_by_hand(f"{NODESET}-{ordinal}", reason)


def resume(world: World, ordinal: int) -> None:
    """`scontrol update nodename=... state=resume`."""
    world.slurm.resumed_by_hand(f"{NODESET}-{ordinal}")


def cordon_pod(world: World, ordinal: int, key: str, on: bool) -> None:
    """`kubectl annotate pod`."""
    body = {"metadata": {"annotations": {key: "true" if on else None}}}
    world.ask("PATCH", f"{CORE}/pods/{NODESET}-{ordinal}", body)


def cordon_machine(world: World, number: int, seconds: float) -> None:
    """`kubectl cordon`, and back again."""
    path = f"/api/v1/nodes/machine-{number}"
    world.ask("PATCH", path, {"spec": {"unschedulable": True}})
    world.later(
        seconds, lambda: world.ask("PATCH", path, {"spec": {"unschedulable": None}}) and None
    )


def delete_pod(world: World, ordinal: int) -> None:
    """`kubectl delete pod`: a user may."""
    world.ask("DELETE", f"{CORE}/pods/{NODESET}-{ordinal}", {})


def evict_pod(world: World, ordinal: int) -> None:
    """What `kubectl drain` does."""
    world.ask("POST", f"{CORE}/pods/{NODESET}-{ordinal}/eviction", {"metadata": {}})


def remake_nodeset(world: World, seconds: float, replicas: int) -> None:
    """`kubectl delete nodeset`, and another one of that name later, as soon as it can be."""
    world.ask("DELETE", f"{GROUP}/nodesets/{NODESET}", {})
    world.later(seconds, lambda: _again(world, replicas))


def _again(world: World, replicas: int) -> None:
    if world.find("slinky.slurm.net/nodesets", NODESET) is None:
        world.declare_nodeset(replicas)
    else:
        world.later(2.0, lambda: _again(world, replicas))


def edit(world: World, number: int) -> None:
    """`kubectl edit` of something that the operator owns."""
    path, body = EDITS[number]
    world.ask("PATCH", path, body)


def delete(world: World, number: int) -> None:
    """`kubectl delete` of something that the operator owns."""
    world.ask("DELETE", DELETIONS[number], {})


def configure(world: World, number: int) -> None:
    """A change of slurm.conf."""
    body = {"spec": {"extraConf": f"# change {number}\n"}}
    world.ask("PATCH", f"{GROUP}/controllers/slurm", body)


def template(world: World, image: str, seconds: float) -> None:
    """A change of the workers' image; one that does not exist is set right a while later."""
    body = {"spec": {"slurmd": {"image": image}}}
    world.ask("PATCH", f"{GROUP}/nodesets/{NODESET}", body)
    if image == MISSING:
        world.later(seconds, lambda: template(world, IMAGES[0], 0.0))


def delete_record(world: World, ordinal: int) -> None:
    """`scontrol delete nodename=...`."""
    world.slurm.deleted_by_hand(f"{NODESET}-{ordinal}")


def _ordinal(dice: Dice) -> int:
    return dice.randrange(LARGEST)


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / 30), 1)


ACTS = {
    "scale": Happening(30, lambda d: (d.randint(0, LARGEST),), scale),
    "job": Happening(14, lambda d: (d.randint(1, 2), _while(d)), job),
    "fill": Happening(10, lambda d: (_while(d),), fill),
    "crowd": Happening(10, lambda d: (_while(d), d.choice([3.0, 20.0])), crowd),
    "suspend": Happening(6, lambda d: (_while(d),), suspend),
    "drain": Happening(10, lambda d: (_ordinal(d), d.choice(REASONS)), drain),
    "resume": Happening(4, lambda d: (_ordinal(d),), resume),
    "cordon_pod": Happening(
        6,
        lambda d: (_ordinal(d), d.choice([POD_CORDON, POD_CORDON_SHORT]), d.random() < 0.6),
        cordon_pod,
    ),
    "cordon_machine": Happening(5, lambda d: (d.randrange(3), _while(d)), cordon_machine),
    "delete_pod": Happening(6, lambda d: (_ordinal(d),), delete_pod),
    "evict_pod": Happening(3, lambda d: (_ordinal(d),), evict_pod),
    "remake_nodeset": Happening(4, lambda d: (_while(d), d.randint(1, LARGEST)), remake_nodeset),
    "edit": Happening(4, lambda d: (d.randrange(len(EDITS)),), edit),
    "delete": Happening(5, lambda d: (d.randrange(len(DELETIONS)),), delete),
    "configure": Happening(3, lambda d: (d.randint(1, 9),), configure),
    "template": Happening(12, lambda d: (d.choice([*IMAGES, MISSING]), _while(d)), template),
    "delete_record": Happening(2, lambda d: (_ordinal(d),), delete_record),
}
