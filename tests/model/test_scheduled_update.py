"""The whole operator in simulated time: updates in a reservation, and the way back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fault_plans.world import NODESET, SPACE, World
from penstock.api.cluster.marks import ROLLBACK
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.labels import RESERVATION_FINALIZER
from penstock.simulation.faults import Fault
from support.stories import NODESET_PATH, story, well

NAME = "SlurmOperatorMaint-compute"
RESOURCE = "slinky.slurm.net/nodesets"


def scheduled(world: World, after: float, *flags: str, **spec: Any) -> None:
    start = datetime.fromtimestamp(int(world.true_time() + after), UTC)
    update = {"startTime": start.strftime("%Y-%m-%dT%H:%M:%SZ"), "duration": "10m"}
    strategy = {"type": "ScheduledUpdate", "scheduledUpdate": {**update, "flags": list(flags)}}
    world.ask("PATCH", NODESET_PATH, {"spec": {"updateStrategy": strategy, **spec}})


def image(name: str) -> Json:
    return {"slurmd": {"image": name}}


def uids(world: World) -> dict[str, str]:
    pods = world.server.objects("/pods", SPACE)
    workers = [one["metadata"] for one in pods if one["metadata"]["name"].startswith(NODESET)]
    return {meta["name"]: meta["uid"] for meta in workers}


def reservation(world: World) -> Json | None:
    world.slurm.ctld.pass_time()
    return world.slurm.ctld.reservations.get(NAME)


def nodeset(world: World) -> Json:
    found = world.find(RESOURCE, NODESET)
    assert found is not None
    return found


def told(world: World, type_: str) -> Json:
    conditions: list[Json] = nodeset(world)["status"]["conditions"]
    none: Json = {}
    return next((one for one in conditions if one["type"] == type_), none)


async def until(holds: Callable[[], object], seconds: float = 120.0) -> None:
    for _ in range(int(seconds)):
        if holds():
            return
        await asyncio.sleep(1.0)
    raise AssertionError("it did not come about")


def all_new(world: World, before: dict[str, str]) -> Callable[[], bool]:
    return lambda: (
        len(uids(world)) == len(before) and not set(before.values()) & set(uids(world).values())
    )


def test_workers_are_replaced_when_the_reservation_runs_and_not_before() -> None:
    """Feature row 39."""

    async def tell(world: World) -> None:
        before = uids(world)
        scheduled(world, 600, **image("slurmd:new"))
        await until(lambda: reservation(world))
        made = reservation(world) or {}
        assert made["node_list"] == "compute-[0-1]"
        assert {"MAINT", "IGNORE_JOBS"} <= set(made["flags"])
        await until(lambda: told(world, "ReservationCreated").get("reason") == "Created")
        job = world.slurm.submit(1)
        assert job is not None
        await asyncio.sleep(500)
        assert uids(world) == before
        await until(lambda: len(set(uids(world).values()) & set(before.values())) == 1, 240)
        await asyncio.sleep(120)
        (busy,) = set(uids(world).items()) & set(before.items())
        assert job.nodes == [busy[0]]
        assert "RUNNING" in job.state
        assert (reservation(world) or {})["node_list"] == busy[0]
        world.slurm.finish(job)
        await until(all_new(world, before))
        await until(lambda: reservation(world) is None)
        await until(lambda: RESERVATION_FINALIZER not in nodeset(world)["metadata"]["finalizers"])
        assert told(world, "ReservationCreated")["status"] == "False"
        await well(world)

    story(tell)


def test_a_changed_time_a_removed_reservation_and_a_restart_change_nothing_in_the_end() -> None:
    """Feature row 39."""

    async def tell(world: World) -> None:
        before = uids(world)
        scheduled(world, 3600, **image("slurmd:new"))
        await until(lambda: reservation(world))
        first = (reservation(world) or {})["start_time"]
        scheduled(world, 900)
        await until(lambda: (reservation(world) or {"start_time": first})["start_time"] != first)
        world.slurm.ctld.delete_reservation(NAME)
        await until(lambda: reservation(world))
        await world.crash(world.processes[0])
        await asyncio.sleep(30)
        world.operator()
        await asyncio.sleep(60)
        assert uids(world) == before
        await until(all_new(world, before), 1200)
        await until(lambda: reservation(world) is None)

    story(tell)


def test_a_slurmrestd_that_is_away_in_the_window_is_waited_for() -> None:
    async def tell(world: World) -> None:
        before = uids(world)
        scheduled(world, 120, **image("slurmd:new"))
        await until(lambda: reservation(world))
        world.slurm_fault(Fault.UNAVAILABLE, SPACE)
        await asyncio.sleep(300)
        assert uids(world) == before
        world.slurm_fault(Fault.NONE, SPACE)
        await until(all_new(world, before), 300)

    story(tell)


def test_one_that_is_over_says_so_and_one_that_comes_again_is_used_at_once() -> None:
    """Feature row 39."""

    async def tell(world: World) -> None:
        before = uids(world)
        scheduled(world, -1200, **image("slurmd:new"))
        await until(lambda: told(world, "ReservationCreated").get("reason") == "ScheduleOver")
        await asyncio.sleep(300)
        assert uids(world) == before
        scheduled(world, -3660, "hourly")
        await until(all_new(world, before), 300)
        await until(lambda: reservation(world) is None)

    story(tell)


def test_a_deleted_nodeset_takes_its_reservation_along() -> None:
    async def tell(world: World) -> None:
        scheduled(world, 3600, **image("slurmd:new"))
        await until(lambda: reservation(world))
        world.ask("DELETE", NODESET_PATH, {})
        await until(lambda: world.find(RESOURCE, NODESET) is None)
        assert reservation(world) is None

    story(tell)


def test_another_strategy_or_the_former_template_takes_it_away() -> None:
    async def tell(world: World) -> None:
        before = uids(world)
        scheduled(world, 3600, **image("slurmd:new"))
        await until(lambda: reservation(world))
        world.ask("PATCH", NODESET_PATH, {"spec": {"slurmd": None}})
        await until(lambda: reservation(world) is None)
        assert uids(world) == before
        world.ask("PATCH", NODESET_PATH, {"spec": image("slurmd:new")})
        await until(lambda: reservation(world))
        world.ask("PATCH", NODESET_PATH, {"spec": {"updateStrategy": {"type": "RollingUpdate"}}})
        await until(all_new(world, before), 300)
        assert reservation(world) is None
        assert told(world, "ReservationCreated") == {}

    story(tell)


def test_a_value_that_is_wrong_is_told_with_its_path_and_changes_nothing() -> None:
    async def tell(world: World) -> None:
        scheduled(world, 3600, "REPLACE")
        await until(lambda: told(world, "Ready").get("reason") == "Invalid")
        message = told(world, "Ready")["message"]
        assert "spec.updateStrategy.scheduledUpdate.flags[0]: 'REPLACE' is none of" in message

    story(tell)


def annotate(world: World, value: str) -> None:
    body = {"metadata": {"annotations": {ROLLBACK: value}}}
    world.ask("PATCH", NODESET_PATH, body)


def test_an_annotation_brings_a_recorded_template_back_once() -> None:
    """Feature row 40, S152."""

    async def tell(world: World) -> None:
        was = nodeset(world)["spec"]
        before = uids(world)
        world.ask("PATCH", NODESET_PATH, {"spec": image("slurmd:new")})
        await until(all_new(world, before), 300)
        await well(world)
        annotate(world, "previous")
        await until(lambda: told(world, "RolledBack").get("status") == "True")
        assert nodeset(world)["spec"] == was
        await well(world)
        world.ask("PATCH", NODESET_PATH, {"spec": image("slurmd:new")})
        await asyncio.sleep(60)
        assert nodeset(world)["spec"]["slurmd"] == {"image": "slurmd:new"}
        annotate(world, "77")
        await until(lambda: "no revision 77" in told(world, "RolledBack").get("message", ""))
        await well(world)
        written = len(world.writes)
        await asyncio.sleep(300)
        assert len(world.writes) == written

    story(tell, spec={"revisionHistoryLimit": 3})
