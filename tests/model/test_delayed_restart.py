"""A restart that somebody asks for waits until slurmctld's files have its new partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest

from fault_plans import worker_sets
from fault_plans.actions.nebius import pause_writer
from fault_plans.api_names import CLUSTER
from fault_plans.kinds import path_of
from fault_plans.nebius_specs import CURRENT, OLDER
from fault_plans.nebius_world import NebiusWorld
from fault_plans.plan import Layout
from fault_plans.world import GROUP, SPACE, World
from penstock.api.cluster.marks import RECONFIGURE, RESTART
from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import Change
from penstock.simulation.event_loop import simulate
from penstock.simulation.slurm.slurmctld import SimulatedJob, SimulatedSlurmctld
from unit.controllers.nebius.lab import Lab

LINES = ["PartitionName=main Nodes=ALL Default=YES", "PartitionName=second Nodes=ALL"]


def _annotate(world: NebiusWorld, key: str, value: str) -> None:
    path = path_of(SPACE, worker_sets.OF_CLUSTER, CLUSTER)
    world.ask("PATCH", path, {"metadata": {"annotations": {key: value}}})


def _restart(world: NebiusWorld) -> None:
    _annotate(world, RESTART, "slurmctld@1")


def _reconfigure(world: NebiusWorld) -> None:
    _annotate(world, RECONFIGURE, "1")


def _change_template(world: NebiusWorld) -> None:
    munge: Json = {"munge": {"image": "munge:26.05-2"}}
    world.edit_cluster(SPACE, {"slurmNodes": {"controller": munge}})


ASKS: dict[str, Callable[[NebiusWorld], None]] = {
    "restart": _restart,
    "reconfigure": _reconfigure,
    "template": _change_template,
}


@asynccontextmanager
async def _operated(lab: Lab) -> AsyncGenerator[None]:
    process = lab.world.operator()
    yield
    await lab.world.crash(process)


def _uid(lab: Lab) -> str:
    found = lab.find("/pods", f"{lab.world.prefix}controller-0")
    return found["metadata"]["uid"] if found is not None else ""


async def _with_new_partition(lab: Lab, shape: str, stands_still: float) -> str:
    """A slurmctld with a partition by a REST call, a job in it, and a writer that stands still."""
    world = lab.world
    world.declare(1)
    await lab.available()
    await asyncio.sleep(30.0)
    pause_writer(world, stands_still, 0)
    raw = {"configType": "custom", "rawConfig": LINES}
    world.edit_cluster(SPACE, {"partitionConfiguration": raw})
    await lab.until(lambda: "second" in world.slurm.ctld.partitions)
    world.slurm.ctld.run("worker-0" if shape == OLDER else "compute-0", partition="second")
    return _uid(lab)


@pytest.mark.parametrize("shape", [OLDER, CURRENT])
@pytest.mark.parametrize("ask", ASKS)
def test_it_waits_for_the_file_of_a_new_partition_and_is_done_once(ask: str, shape: str) -> None:
    async def story() -> None:
        lab = Lab(shape)
        async with _operated(lab):
            before = await _with_new_partition(lab, shape, 20.0)
            ASKS[ask](lab.world)
            await asyncio.sleep(5.0)
            assert _uid(lab) == before
            assert "slurmctld restarts after it" in lab.condition("ConfigApplied")[2]
            await asyncio.sleep(90.0)
            assert lab.world.slurm.ctld.defunct == []
            assert len(lab.world.slurm.ctld.jobs) == 1
            assert (_uid(lab) == before) == (ask == "reconfigure")
            pod = f"pods/{lab.world.prefix}controller-0"
            assert lab.gone.count(pod) == (0 if ask == "reconfigure" else 1)
            results = {one["result"] for one in lab.cluster["status"].get("triggers", [])}
            assert results == (set() if ask == "template" else {"Done"})
            assert "slurmctld restarts after it" not in lab.condition("ConfigApplied")[2]

    simulate(story())


@pytest.mark.parametrize("ask", ["restart", "template"])
def test_it_waits_no_longer_than_a_minute(ask: str) -> None:
    async def story() -> None:
        lab = Lab(OLDER)
        async with _operated(lab):
            before = await _with_new_partition(lab, OLDER, 1000.0)
            ASKS[ask](lab.world)
            await asyncio.sleep(45.0)
            assert _uid(lab) == before
            await lab.until(lambda: _uid(lab) not in ("", before), 45.0)

    simulate(story())


def _once_it_is_changed(world: World, workload: str, then: Callable[[], object]) -> None:
    """Call back as soon as the spec of a StatefulSet has changed."""

    def changed(change: Change) -> None:
        if change.resource != "apps/statefulsets" or change.key != (SPACE, workload):
            return
        if change.old is not None and change.old.obj["spec"] != change.last.obj["spec"]:
            asyncio.get_running_loop().call_soon(then)

    world.server.store.listeners.append(changed)


@pytest.mark.parametrize("shape", [OLDER, CURRENT])
def test_a_new_partition_waits_for_the_pod_of_a_changed_template(shape: str) -> None:
    async def story() -> None:
        lab = Lab(shape)
        world = lab.world
        raw = {"configType": "custom", "rawConfig": LINES}
        async with _operated(lab):
            world.declare(1)
            await lab.available()
            await asyncio.sleep(30.0)
            spec: Json = {"partitionConfiguration": raw}
            workload = f"{world.prefix}controller"
            _once_it_is_changed(world, workload, lambda: world.edit_cluster(SPACE, spec))
            _change_template(world)
            await lab.until(lambda: "second" in world.slurm.ctld.partitions)
            world.slurm.ctld.run("worker-0" if shape == OLDER else "compute-0", partition="second")
            await asyncio.sleep(90.0)
            assert world.slurm.ctld.defunct == []

    simulate(story())


async def _job_in_second(ctld: SimulatedSlurmctld) -> SimulatedJob:
    """A job that enters the new partition as soon as slurmctld has that."""
    for _ in range(1000):
        if "second" in ctld.partitions:
            break
        await asyncio.sleep(0.05)
    return ctld.run("compute-0", partition="second")


def test_a_new_partition_of_a_controller_waits_for_the_pod_of_a_changed_template() -> None:
    path = f"{GROUP}/controllers/slurm"

    async def story() -> None:
        world = World(1, Layout())
        world.declare(1)
        process = world.operator()
        await asyncio.sleep(90.0)
        ctld = world.slurm.ctld
        conf: Json = {"spec": {"extraConf": "PartitionName=second Nodes=ALL\n"}}
        _once_it_is_changed(world, "slurm-controller", lambda: world.ask("PATCH", path, conf))
        world.ask("PATCH", path, {"spec": {"slurmctld": {"image": "slurmctld:26.05-2"}}})
        job = await _job_in_second(ctld)
        await asyncio.sleep(90.0)
        assert (ctld.defunct, job.state) == ([], {"RUNNING"})
        await world.crash(process)

    simulate(story())


@pytest.mark.parametrize(("key", "value"), [(RECONFIGURE, "1"), (RESTART, "slurmctld@1")])
def test_jobs_of_a_new_partition_of_a_controller_are_kept(key: str, value: str) -> None:
    path = f"{GROUP}/controllers/slurm"

    async def story() -> None:
        world = World(1, Layout())
        world.declare(1)
        process = world.operator()
        await asyncio.sleep(90.0)
        ctld = world.slurm.ctld
        conf = "PartitionName=second Nodes=ALL\n"
        world.ask("PATCH", path, {"spec": {"extraConf": conf}})
        job = await _job_in_second(ctld)
        world.ask("PATCH", path, {"metadata": {"annotations": {key: value}}})
        await asyncio.sleep(60.0)
        found = world.find("slinky.slurm.net/controllers", "slurm") or {}
        assert [one["result"] for one in found["status"]["triggers"]] == ["Done"]
        assert (ctld.defunct, job.state) == ([], {"RUNNING"})
        await world.crash(process)

    simulate(story())
