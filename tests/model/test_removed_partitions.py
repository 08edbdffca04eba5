"""A partition that is declared no more stays under its jobs, whatever else changes with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from fault_plans.plan import Layout
from fault_plans.promises import final_state as expected
from fault_plans.world import GROUP, NODESET, SPACE, World
from penstock.kube.cache.own_writes import OwnWrites
from penstock.simulation.event_loop import simulate

OLD = "PartitionName=old Nodes=ALL\n"
NEW = "PartitionName=new Nodes=ALL\n"


def _conf(world: World, text: str) -> None:
    world.ask("PATCH", f"{GROUP}/controllers/slurm", {"spec": {"extraConf": text}})


def _file(world: World) -> str:
    found = world.find("/configmaps", "slurm-config")
    return "" if found is None else found["data"]["slurm.conf"]


def _condition(world: World, type_: str) -> dict[str, str]:
    found = world.find("slinky.slurm.net/controllers", "slurm") or {}
    every: list[dict[str, str]] = found.get("status", {}).get("conditions", [])
    none: dict[str, str] = {}
    return next((one for one in every if one["type"] == type_), none)


async def _until(what: str, holds: Callable[[], object], seconds: float = 120.0) -> None:
    for _ in range(int(seconds / 0.1)):
        if holds():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(what)


async def _settled(conf: str = OLD) -> World:
    world = World(3, Layout())
    world.declare(1)
    world.operator()
    await asyncio.sleep(60.0)
    assert expected.missing(world) == []
    _conf(world, conf)
    await _until("old is there", lambda: not conf or "old" in world.slurm.ctld.partitions)
    await asyncio.sleep(20.0)
    return world


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "SUSPENDED"])
@pytest.mark.parametrize(
    "key",
    ["", "MaxArraySize=1002\n", "CommunicationParameters=NoCtldInAddrAny\n"],
    ids=["rest", "reconfigure", "restart"],
)
def test_a_renamed_partition_stays_drained_until_its_job_ended_and_all_else_goes_on(
    key: str, state: str
) -> None:
    async def scenario() -> None:
        world = await _settled()
        ctld = world.slurm.ctld
        job = ctld.run(f"{NODESET}-0", state={state}, partition="old")
        _conf(world, NEW + key)
        await _until("the rest goes on", lambda: "new" in ctld.partitions and key in _file(world))
        await asyncio.sleep(90.0)
        assert ctld.partitions["old"]["partition"]["state"] == ["DRAIN"]
        assert "PartitionName=old Nodes=ALL State=DRAIN" in _file(world)
        assert job.state == {state}
        told = _condition(world, "PartitionsDraining")
        assert (told["status"], told["reason"]) == ("True", "JobsInPartition")
        assert f"old: 1 job: {job.id}" in told["message"]
        assert _condition(world, "Ready")["status"] == "True"
        assert not _condition(world, "Stalled")
        assert not _condition(world, "Reconciling")

        ctld.finish(job)
        await _until("old goes", lambda: "old" not in ctld.partitions)
        await _until("the file follows", lambda: "old" not in _file(world))
        await _until("nothing is told", lambda: not _condition(world, "PartitionsDraining"))
        assert not ctld.defunct

    simulate(scenario())


def test_the_hold_outlives_the_controller_object_and_the_operator() -> None:
    async def scenario() -> None:
        world = await _settled()
        job = world.slurm.ctld.run(f"{NODESET}-0", partition="old")
        path = f"{GROUP}/controllers"
        await world.crash(world.processes[0])
        found = world.find("slinky.slurm.net/controllers", "slurm") or {}
        world.ask("DELETE", f"{path}/slurm", {})
        await _until("it is gone", lambda: not _file(world))
        body = {"kind": "Controller", "metadata": {"name": "slurm"}}
        world.ask("POST", path, {**body, "spec": {**found["spec"], "extraConf": NEW}})
        world.operator()
        await _until("the file is there", lambda: "new" in _file(world))
        assert "PartitionName=old Nodes=ALL State=DRAIN" in _file(world)
        await asyncio.sleep(120.0)
        assert "RUNNING" in job.state
        world.slurm.ctld.finish(job)
        await _until("old goes", lambda: "old" not in world.slurm.ctld.partitions)
        assert not world.slurm.ctld.defunct

    simulate(scenario())


def test_while_jobs_are_not_known_a_removed_partition_stays() -> None:
    async def scenario() -> None:
        world = await _settled()
        world.ask("DELETE", f"{GROUP}/restapis/slurm", {})
        await asyncio.sleep(30.0)
        _conf(world, NEW + "MaxArraySize=1002\n")
        await _until("the rest goes on", lambda: "MaxArraySize" in _file(world))
        await asyncio.sleep(120.0)
        assert "PartitionName=old Nodes=ALL State=DRAIN" in _file(world)
        told = _condition(world, "PartitionsDraining")
        assert told["reason"] == "JobsUnknown"
        assert "no RestApi" in told["message"]
        world.declare_restapi(SPACE)
        await _until("old goes", lambda: "old" not in _file(world))

    simulate(scenario())


def test_a_nodeset_whose_own_partition_slurmctld_rejects_says_so_until_it_is_fixed() -> None:
    async def scenario() -> None:
        world = await _settled()

        def ready() -> dict[str, str]:
            found = world.find("slinky.slurm.net/nodesets", NODESET) or {}
            every = found.get("status", {}).get("conditions", [])
            none: dict[str, str] = {}
            return next((one for one in every if one["type"] == "Ready"), none)

        world.edit_nodeset(0, {"spec": {"partition": {"config": "AllowQos=nosuch"}}})
        await _until("it says so", lambda: ready().get("reason") == "PartitionRefused")
        assert "Invalid qos specification" in ready()["message"]
        world.edit_nodeset(0, {"spec": {"partition": {"config": "MaxTime=5"}}})
        await _until("it is Ready", lambda: ready().get("status") == "True")

    simulate(scenario())


def test_a_new_controller_of_the_same_name_has_none_of_the_formers_memory() -> None:
    async def scenario() -> None:
        world = await _settled("")
        world.edit_nodeset(0, {"spec": {"partition": {"config": "AllowQos=nosuch"}}})
        await _until("it is told", lambda: _condition(world, "Stalled"))
        found = world.find("slinky.slurm.net/controllers", "slurm") or {}
        world.ask("DELETE", f"{GROUP}/controllers/slurm", {})
        world.edit_nodeset(0, {"spec": {"partition": {"config": "MaxTime=5"}}})
        body = {"kind": "Controller", "metadata": {"name": "slurm"}, "spec": found["spec"]}
        await asyncio.sleep(5.0)
        world.ask("POST", f"{GROUP}/controllers", body)
        await _until("the file has what is declared", lambda: "MaxTime=5" in _file(world))
        assert "qos" not in _condition(world, "Ready").get("message", "")
        await _until("it is Ready", lambda: _condition(world, "Ready").get("status") == "True")

    simulate(scenario())


def test_a_removed_partition_goes_while_slurmctld_refuses_another_one() -> None:
    async def scenario() -> None:
        world = await _settled()
        _conf(world, OLD + "PartitionName=wide Nodes=ALL\n")
        await _until("wide is there", lambda: "wide" in world.slurm.ctld.partitions)
        _conf(world, "PartitionName=wide Nodes=ALL AllowQos=nosuch\n")
        await _until("old goes", lambda: "old" not in world.slurm.ctld.partitions)
        await _until("the file follows", lambda: "old" not in _file(world))

    simulate(scenario())


def _never(*_: object) -> bool:
    return False


@pytest.mark.parametrize("often", [False, True], ids=["seldom", "often"])
@pytest.mark.parametrize("key", ["", "SchedulerTimeSlice=11\n"], ids=["rest", "reconfigure"])
def test_a_partition_that_was_declared_again_is_not_taken_for_the_empty_one_of_before(
    key: str, often: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more reconciles: a call before the file that declares it again counts no more."""
    if often:
        monkeypatch.setattr(OwnWrites, "is_own", _never)

    async def scenario() -> None:
        world = await _settled()
        ctld = world.slurm.ctld
        _conf(world, "")
        await _until("it is gone", lambda: "old" not in ctld.partitions)
        _conf(world, OLD + key)
        await _until("it is back", lambda: "old" in ctld.partitions)
        job = ctld.run(f"{NODESET}-0", partition="old")
        _conf(world, key)
        await asyncio.sleep(90.0)
        assert (ctld.defunct, job.state) == ([], {"RUNNING"})
        ctld.finish(job)
        await _until("it goes with its job", lambda: "old" not in ctld.partitions)
        await world.crash(world.processes[0])

    simulate(scenario())


def test_a_slurmctld_whose_pod_is_leaving_is_told_of_no_partition_that_its_next_file_lacks() -> (
    None
):
    async def scenario() -> None:
        world = await _settled("")
        ctld = world.slurm.ctld
        pod = world.find("/pods", "slurm-controller-0") or {}
        world.ask("DELETE", f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}", {})
        await asyncio.sleep(0.5)
        _conf(world, NEW)
        await _until("it is told", lambda: "new" in ctld.partitions)
        job = ctld.run(f"{NODESET}-0", partition="new")
        await asyncio.sleep(60.0)
        assert (ctld.defunct, job.state) == ([], {"RUNNING"})
        await world.crash(world.processes[0])

    simulate(scenario())
