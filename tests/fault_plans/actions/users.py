"""What people do: users of Slurm, administrators of Slurm and of Kubernetes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from fault_plans.kinds import path_of
from fault_plans.plan import LARGEST, Happening
from fault_plans.random_source import Dice
from fault_plans.world import CORE, GROUP, SPACE, World
from penstock.api.slinky.labels import HOSTNAME_OVERRIDE, POD_CORDON, POD_CORDON_SHORT
from penstock.simulation.kubelet.kubelet import LABELS, MISSING
from penstock.simulation.slurm.cluster import SimulatedSlurm
from penstock.simulation.slurm.slurmctld import SimulatedJob

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


def scale(world: World, replicas: int, which: int) -> None:
    """`kubectl scale`."""
    world.scale(replicas, which)


def job(world: World, width: int, seconds: float, which: int) -> None:
    """A user's job, as soon as nodes are free."""
    slurm = world.slurms[world.space(which)]
    found = slurm.submit(width)
    if found is None:
        world.later(1.0, lambda: slurm.submit(width) and None)
        return
    world.later(seconds, lambda: slurm.finish(found))


def fill(world: World, seconds: float) -> None:
    """Jobs on all free nodes."""
    for which, slurm in enumerate(world.slurms.values()):
        while slurm.free_nodes():
            job(world, 1, seconds, which)


async def crowd(world: World, seconds: float, length: float) -> None:
    """Jobs wait for nodes: for so long, one begins the moment a node is free."""
    end = world.true_time() + seconds
    while world.true_time() < end and not world.healed:
        fill(world, world.dice.between(0.5, 1.5) * length)
        await asyncio.sleep(0.3)


def suspend(world: World, seconds: float) -> None:
    """An administrator suspends all jobs for a while; Slurm shows their nodes IDLE then."""
    for slurm in world.slurms.values():
        for one in slurm.running():
            slurm.change(one, "SUSPENDED")
            world.later(seconds, partial(_resume, slurm, one))


def _resume(slurm: SimulatedSlurm, one: SimulatedJob) -> None:
    if "SUSPENDED" in one.state:
        slurm.change(one, "RUNNING")


def drain(world: World, number: int, reason: str) -> None:
    """`scontrol update nodename=... state=drain reason=...`."""
    space, name = world.node(number)
    world.slurms[space].drained_by_hand(name, reason)


def resume(world: World, number: int) -> None:
    """`scontrol update nodename=... state=resume`."""
    space, name = world.node(number)
    world.slurms[space].resumed_by_hand(name)


def cordon_pod(world: World, number: int, key: str, on: bool) -> None:
    """`kubectl annotate pod`."""
    key = key if key in world.marks.cordon else world.marks.cordon[0]
    body = {"metadata": {"annotations": {key: "true" if on else None}}}
    world.ask("PATCH", _pod(world, number), body)


def cordon_machine(world: World, number: int, seconds: float) -> None:
    """`kubectl cordon`, and back again."""
    path = f"/api/v1/nodes/machine-{number}"
    world.ask("PATCH", path, {"spec": {"unschedulable": True}})
    world.later(
        seconds, lambda: world.ask("PATCH", path, {"spec": {"unschedulable": None}}) and None
    )


async def drain_machine(world: World, number: int, seconds: float) -> None:
    """`kubectl drain`: cordon, then evict what is there until it is gone; later `uncordon`."""
    name = f"machine-{number}"
    cordon_machine(world, number, seconds)
    end = world.true_time() + seconds
    while world.true_time() < end and not world.healed:
        for pod in world.machines.on(name):
            meta = pod["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
            world.ask("POST", path, {"metadata": {}})
        await asyncio.sleep(5.0)


def taint_machine(world: World, number: int, effect: str, seconds: float) -> None:
    """`kubectl taint node`, and back again."""
    name = f"machine-{number}"
    world.machines.taint(name, effect)
    world.later(seconds, lambda: world.machines.taint(name, None))


def remove_machine(world: World, number: int, seconds: float) -> None:
    """`kubectl delete node`; the machine joins again a while later."""
    name = f"machine-{number}"
    world.machines.remove(name)
    world.later(seconds, lambda: world.machines.add(name))


def add_machine(world: World, seconds: float) -> None:
    """A machine joins for a while, as by an autoscaler."""
    name = f"machine-{LARGEST - 1}"
    world.machines.add(name)
    world.later(seconds, lambda: world.machines.remove(name))


def label_machine(world: World, number: int, seconds: float) -> None:
    """`kubectl label node`: the machine is not for workers, for a while."""
    path, (key, value) = f"/api/v1/nodes/machine-{number}", next(iter(LABELS.items()))
    world.ask("PATCH", path, {"metadata": {"labels": {key: None}}})
    world.later(
        seconds, lambda: world.ask("PATCH", path, {"metadata": {"labels": {key: value}}}) and None
    )


def rename_node(world: World, number: int, shared: bool, seconds: float) -> None:
    """`kubectl annotate node`: what the Slurm node of a machine is called.

    A name that another machine may have too is put right a while later.
    """

    def call(host: str) -> None:
        body = {"metadata": {"annotations": {HOSTNAME_OVERRIDE: host}}}
        world.ask("PATCH", f"/api/v1/nodes/machine-{number}", body)

    call("node-x" if shared else f"node-{number}")
    world.later(seconds, lambda: call(f"node-{number}" if shared else ""))


def switch_mode(world: World, mode: str, which: int) -> None:
    """A change of a NodeSet's scaling mode; of two in one cluster it would be one too many."""
    space, _ = world.place(which)
    if sum(1 for where, _ in world.places if where == space) == 1:
        world.edit_nodeset(which, {"spec": {"scalingMode": mode}})


def delete_pod(world: World, number: int) -> None:
    """`kubectl delete pod`: a user may."""
    world.ask("DELETE", _pod(world, number), {})


def evict_pod(world: World, number: int) -> None:
    """What `kubectl drain` does to one pod."""
    world.ask("POST", f"{_pod(world, number)}/eviction", {"metadata": {}})


def _pod(world: World, number: int) -> str:
    space, name = world.worker(number)
    return f"/api/v1/namespaces/{space}/pods/{name}"


def remake_nodeset(world: World, seconds: float, replicas: int, which: int) -> None:
    """`kubectl delete nodeset`, and another one of that name later, as soon as it can be."""
    space, name = world.place(which)
    world.ask("DELETE", path_of(space, world.plural, name), {})
    again(
        world, seconds, (world.plural, space, name), lambda: world.declare_nodeset(replicas, which)
    )


def remake_restapi(world: World, seconds: float, which: int) -> None:
    """`kubectl delete restapi`: Slurm cannot be asked until there is another one."""
    space = world.space(which)
    world.ask("DELETE", path_of(space, "restapis", "slurm"), {})
    again(world, seconds, ("restapis", space, "slurm"), lambda: world.declare_restapi(space))


def remake_login(world: World, seconds: float, which: int) -> None:
    """`kubectl delete loginset`, and another one later."""
    space = world.space(which)
    if world.layout.login:
        world.ask("DELETE", path_of(space, "loginsets", "login"), {})
        again(world, seconds, ("loginsets", space, "login"), lambda: world.declare_login(space))


def again(
    world: World, seconds: float, of: tuple[str, str, str], declare: Callable[[], None]
) -> None:
    """Declare something anew later, when nothing of its name is there any more.

    `of` are its plural, its namespace and its name.
    """

    def look() -> None:
        plural, space, name = of
        if world.of_kind(plural, name, space) is None:
            declare()
        else:
            world.later(2.0, look)

    world.later(seconds, look)


def edit(world: World, number: int) -> None:
    """`kubectl edit` of something that the operator owns."""
    path, body = EDITS[number]
    world.ask("PATCH", path, body)


def delete(world: World, number: int) -> None:
    """`kubectl delete` of something that the operator owns."""
    world.ask("DELETE", DELETIONS[number], {})


def configure(world: World, number: int) -> None:
    """A change of slurm.conf."""
    line = f"# change {number}\n" if number % 2 else f"SchedulerTimeSlice={10 + number}\n"
    body = {"spec": {"extraConf": line}}
    world.ask("PATCH", f"{GROUP}/controllers/slurm", body)


def misconfigure(world: World, number: int, seconds: float) -> None:
    """A change of slurm.conf that slurmctld refuses, put right a while later.

    A slurmctld that never worked has to be given what is declared, so it is only put right then.
    """
    controller = world.find("slinky.slurm.net/controllers", "slurm")
    if controller is not None and controller.get("status", {}).get("effectiveConfigHash"):
        body = {"spec": {"extraConf": f"BogusKey={number}\n"}}
        world.ask("PATCH", f"{GROUP}/controllers/slurm", body)
    world.later(seconds, lambda: configure(world, number))


def limit(world: World, minutes: int, which: int) -> None:
    """A change of a NodeSet's partition."""
    world.edit_nodeset(which, {"spec": {"partition": {"config": f"MaxTime={minutes}"}}})


def reconfigure(world: World, which: int) -> None:
    """`scontrol reconfigure`: as after a restart, slurmctld has what its file has."""
    space = world.space(which)
    if world.slurms[space].up:
        world.slurms[space].loses_unsaved()
        world.machines.mounts.reread(space)


def template(world: World, image: str, seconds: float, which: int) -> None:
    """A change of the workers' image; one that does not exist is set right a while later."""
    world.edit_nodeset(which, {"spec": {"slurmd": {"image": image}}})
    if image == MISSING:
        world.later(seconds, lambda: template(world, IMAGES[0], 0.0, which))


def delete_record(world: World, number: int) -> None:
    """`scontrol delete nodename=...`."""
    space, name = world.node(number)
    world.slurms[space].deleted_by_hand(name)


def _worker(dice: Dice) -> int:
    """One of the workers, by `World.worker`; more of those of the first NodeSet."""
    return dice.randrange(LARGEST) + LARGEST * dice.choice([0, 0, 1, 2])


def _which(dice: Dice) -> int:
    return dice.choice([0, 0, 1, 2])


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / 30), 1)


ACTS = {
    "scale": Happening(30, lambda d: (d.randint(0, LARGEST), _which(d)), scale),
    "job": Happening(14, lambda d: (d.randint(1, 2), _while(d), _which(d)), job),
    "fill": Happening(10, lambda d: (_while(d),), fill),
    "crowd": Happening(10, lambda d: (_while(d), d.choice([3.0, 20.0])), crowd),
    "suspend": Happening(6, lambda d: (_while(d),), suspend),
    "drain": Happening(10, lambda d: (_worker(d), d.choice(REASONS)), drain),
    "resume": Happening(4, lambda d: (_worker(d),), resume),
    "cordon_pod": Happening(
        6,
        lambda d: (_worker(d), d.choice([POD_CORDON, POD_CORDON_SHORT]), d.random() < 0.6),
        cordon_pod,
    ),
    "cordon_machine": Happening(5, lambda d: (d.randrange(3), _while(d)), cordon_machine),
    "drain_machine": Happening(3, lambda d: (d.randrange(3), _while(d)), drain_machine),
    "taint_machine": Happening(
        4,
        lambda d: (d.randrange(3), d.choice(["NoSchedule", "NoExecute"]), _while(d)),
        taint_machine,
    ),
    "remove_machine": Happening(3, lambda d: (d.randrange(3), _while(d)), remove_machine),
    "add_machine": Happening(3, lambda d: (_while(d),), add_machine),
    "label_machine": Happening(4, lambda d: (d.randrange(3), _while(d)), label_machine),
    "rename_node": Happening(
        3, lambda d: (d.randrange(3), d.random() < 0.5, _while(d)), rename_node
    ),
    "switch_mode": Happening(
        4, lambda d: (d.choice(["DaemonSet", "StatefulSet"]), _which(d)), switch_mode
    ),
    "delete_pod": Happening(6, lambda d: (_worker(d),), delete_pod),
    "evict_pod": Happening(3, lambda d: (_worker(d),), evict_pod),
    "remake_nodeset": Happening(
        4, lambda d: (_while(d), d.randint(1, LARGEST), _which(d)), remake_nodeset
    ),
    "remake_restapi": Happening(2, lambda d: (_while(d), _which(d)), remake_restapi),
    "remake_login": Happening(1, lambda d: (_while(d), _which(d)), remake_login),
    "edit": Happening(4, lambda d: (d.randrange(len(EDITS)),), edit),
    "delete": Happening(5, lambda d: (d.randrange(len(DELETIONS)),), delete),
    "configure": Happening(3, lambda d: (d.randint(1, 9),), configure),
    "misconfigure": Happening(3, lambda d: (d.randint(1, 9), _while(d)), misconfigure),
    "limit": Happening(6, lambda d: (d.randint(1, 9), _which(d)), limit),
    "reconfigure": Happening(3, lambda d: (_which(d),), reconfigure),
    "template": Happening(
        12, lambda d: (d.choice([*IMAGES, MISSING]), _while(d), _which(d)), template
    ),
    "delete_record": Happening(2, lambda d: (_worker(d),), delete_record),
}
