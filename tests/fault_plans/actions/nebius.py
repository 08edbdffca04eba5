"""What users do to SlurmClusters, and what goes wrong in their jails."""

from __future__ import annotations

from functools import partial

from fault_plans import worker_sets
from fault_plans.actions.users import again, remake_nodeset
from fault_plans.api_names import CLUSTER, OF_NEBIUS
from fault_plans.kinds import path_of
from fault_plans.nebius_world import NebiusWorld
from fault_plans.plan import LARGEST, Family, Happening
from fault_plans.random_source import Dice
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.simulation.kubelet.jobs import JOBS
from penstock.simulation.kubelet.pod_lifecycle import PODS, app_of
from penstock.simulation.slurm.reconfigure import ENDS, HANGS, REBINDS

MODES = (
    "downscale",
    "downscaleAndDeletePopulateJail",
    "downscaleAndOverwritePopulateJail",
    "skipPopulateJail",
)
Edit = tuple[str, Json]
_MAIN = "PartitionName=main Nodes=ALL Default=YES"
LINES: tuple[list[str], ...] = (
    [_MAIN],
    [f"{_MAIN} MaxTime=7"],
    [_MAIN, "PartitionName=second Nodes=ALL"],
    [_MAIN, "PartitionName=second Nodes=ALL MaxTime=9", "PartitionName=third Nodes=ALL"],
)
"""Partitions that users declare."""


def _edits(prefix: str) -> tuple[Edit, ...]:
    """Objects of the operator and what somebody changes in them."""
    return (
        (f"/services/{CLUSTER}-controller-svc", {"spec": {"selector": {"nobody": "here"}}}),
        (f"/configmaps/{CLUSTER}-sysctl", {"data": {"sysctl.conf": "nonsense"}}),
        (f"/deployments/{prefix}rest", {"spec": {"replicas": 0}}),
        (f"/deployments/{prefix}sconfigcontroller", {"spec": {"replicas": 0}}),
        (f"/statefulsets/{prefix}login", {"spec": {"replicas": 0}}),
    )


def _objects(prefix: str) -> tuple[str, ...]:
    return (
        f"/services/{CLUSTER}-controller-svc",
        f"/configmaps/{OF_NEBIUS.startup}",
        f"/configmaps/{names.candidate_configs(CLUSTER)}",
        f"/pods/{prefix}controller-0",
        f"/pods/{prefix}rest-0",
        f"/pods/{prefix}sconfigcontroller-0",
        f"/pods/{prefix}login-0",
        f"/deployments/{prefix}rest",
        f"/deployments/{prefix}sconfigcontroller",
    )


def _path(space: str, of: str) -> str:
    apps = of.startswith(("/deployments", "/statefulsets"))
    return f"{'/apis/apps/v1' if apps else '/api/v1'}/namespaces/{space}{of}"


def edit_object(world: NebiusWorld, number: int, which: int) -> None:
    """`kubectl edit` of something that the operator owns."""
    of, body = _edits(world.prefix)[number]
    world.ask("PATCH", _path(world.space(which), of), body)


def delete_object(world: NebiusWorld, number: int, which: int) -> None:
    """`kubectl delete` of something that the operator owns."""
    world.ask("DELETE", _path(world.space(which), _objects(world.prefix)[number]), {})


def customize(world: NebiusWorld, number: int, which: int) -> None:
    """A change of customSlurmConfig."""
    line = f"# change {number}\n" if number % 2 else f"SchedulerTimeSlice={10 + number}\n"
    world.edit_cluster(world.space(which), {"customSlurmConfig": line})


def spoil(world: NebiusWorld, number: int, seconds: float, which: int) -> None:
    """A change of customSlurmConfig that slurmctld rejects, and a good one later."""
    if _has_worked(world, world.space(which)):
        line = f"BogusKey={number}\n"
        world.edit_cluster(world.space(which), {"customSlurmConfig": line})
    world.later(seconds, partial(customize, world, number, which))


def restart_for(world: NebiusWorld, option: str, number: int, seconds: float, which: int) -> None:
    """A key changes that needs a restart of slurmctld; it has another value later.

    With an `option` slurmctld does not come up with it, which no trial start sees.
    """
    if _has_worked(world, world.space(which)):
        line = f"{REBINDS},{option}" if option else REBINDS
        spec = {"customSlurmConfig": f"{line}\n# change {number}\n"}
        world.edit_cluster(world.space(which), spec)
    world.later(seconds, partial(customize, world, number, which))


def _has_worked(world: NebiusWorld, space: str) -> bool:
    """Whether it has: a first configuration takes effect whatever it is."""
    cluster = world.cluster(space)
    return cluster is not None and bool(cluster.get("status", {}).get("effectiveConfigHash"))


def repartition(world: NebiusWorld, number: int, spoiled: bool, seconds: float, which: int) -> None:
    """Other partitions, maybe right after a line that slurmctld rejects; good lines come later."""
    space = world.space(which)
    if spoiled:
        spoil(world, number, seconds, which)
    world.edit_cluster(
        space, {"partitionConfiguration": {"configType": "custom", "rawConfig": LINES[number]}}
    )


def maintain(world: NebiusWorld, mode: str, seconds: float, which: int) -> None:
    """A maintenance mode, for a while."""
    space = world.space(which)
    world.edit_cluster(space, {"maintenance": mode})
    # As it was: another cluster may have been created meanwhile, or none yet.
    world.later(seconds, lambda: world.edit_cluster(space, {"maintenance": None}))


def recreate_cluster(world: NebiusWorld, seconds: float, which: int) -> None:
    """`kubectl delete slurmcluster`, and another one of that name later; NodeSets stay."""
    space = world.space(which)
    if world.is_older:
        return
    plural = worker_sets.OF_CLUSTER
    world.ask("DELETE", path_of(space, plural, CLUSTER), {})
    again(world, seconds, (plural, space, CLUSTER), lambda: world.declare_cluster(space))


def uninstall(world: NebiusWorld, seconds: float, replicas: int, which: int) -> None:
    """`helm uninstall` of a cluster with its NodeSets, and `helm install` later."""
    recreate_cluster(world, seconds, which)
    for number, (space, _) in enumerate(world.places):
        if space == world.space(which):
            remake_nodeset(world, seconds, replicas, number)


def delete_job(world: NebiusWorld, which: int) -> None:
    """`kubectl delete job` of the one that fills the jail."""
    path = f"/apis/batch/v1/namespaces/{world.space(which)}/jobs/{names.populate_job(CLUSTER)}"
    world.ask("DELETE", path, {})


def fail_populate(world: NebiusWorld, seconds: float, which: int) -> None:
    """The Job that fills the jail fails; later its user deletes it, as its condition advises."""
    space = world.space(which)
    world.jobs.failing.add(space)

    def complete_again() -> None:
        world.jobs.failing.discard(space)
        job = world.find(JOBS, names.populate_job(CLUSTER), space)
        found: list[Json] = (job or {}).get("status", {}).get("conditions", [])
        if any(one["type"] == "Failed" for one in found):
            delete_job(world, which)

    world.later(seconds, complete_again)


def kill_writer(world: NebiusWorld, which: int) -> None:
    """The pod of sconfigcontroller is killed, maybe between two files."""
    space = world.space(which)
    for pod in world.server.objects(PODS, space):
        if app_of(pod) == "sconfigcontroller":
            path = f"/api/v1/namespaces/{space}/pods/{pod['metadata']['name']}"
            world.ask("DELETE", path, {"gracePeriodSeconds": 0})


def pause_writer(world: NebiusWorld, seconds: float, which: int) -> None:
    """sconfigcontroller does nothing for a while."""
    space = world.space(which)
    world.writer.paused.add(space)

    def go_on() -> None:
        world.writer.paused.discard(space)
        world.writer.schedule(space)

    world.later(seconds, go_on)


def _which(dice: Dice) -> int:
    return dice.choice([0, 0, 1])


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / 30), 1)


NEBIUS_ACTS = {
    "edit_object": Happening(4, lambda d: (d.randrange(5), _which(d)), edit_object),
    "delete_object": Happening(6, lambda d: (d.randrange(9), _which(d)), delete_object),
    "customize": Happening(10, lambda d: (d.randint(1, 9), _which(d)), customize),
    "spoil": Happening(8, lambda d: (d.randint(1, 9), _while(d), _which(d)), spoil),
    "restart_for": Happening(
        5,
        lambda d: (d.choice(["", ENDS, HANGS]), d.randint(1, 9), 2 * _while(d), _which(d)),
        restart_for,
    ),
    "maintain": Happening(5, lambda d: (d.choice(MODES), _while(d), _which(d)), maintain),
    "recreate_cluster": Happening(3, lambda d: (_while(d), _which(d)), recreate_cluster),
    "uninstall": Happening(3, lambda d: (_while(d), d.randint(1, LARGEST), _which(d)), uninstall),
    "delete_job": Happening(3, lambda d: (_which(d),), delete_job),
}
"""What users do."""
NEBIUS_FAULTS = {
    "fail_populate": Happening(3, lambda d: (_while(d), _which(d)), fail_populate),
    "kill_writer": Happening(6, lambda d: (_which(d),), kill_writer),
    "pause_writer": Happening(4, lambda d: (_while(d), _which(d)), pause_writer),
}
"""What goes wrong."""
PARTITIONS = Family(
    "partitions of SlurmClusters, also beside rejected lines",
    dice=19,
    share=0.4,
    users={
        "repartition": Happening(
            3,
            lambda d: (d.randrange(len(LINES)), d.random() < 0.5, 2 * _while(d), _which(d)),
            repartition,
        ),
    },
)
