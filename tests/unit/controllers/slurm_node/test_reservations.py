"""Reservations are made, changed and deleted as was decided, and refusals are remembered."""

from __future__ import annotations

import asyncio
import time

from penstock.decide.action import DeleteNodeRecord, DeleteReservation, EventReason, SetReservation
from penstock.simulation.faults import Fault
from penstock.slurm.known import Known, Unknown
from penstock.slurm.mirror.reservations import ReservationMirror
from support import nodesets
from unit.controllers.stage import Stage, stage

NAME = "SlurmOperatorMaint-compute"
WHY = EventReason("ReservationCreated", "it is time")
FLAGS = ("MAINT", "IGNORE_JOBS")


def made(*nodes: str, start: int = 3600, end: int = 7200) -> SetReservation:
    now = int(time.time())
    return SetReservation(NAME, nodes, FLAGS, WHY, now + start, now + end)


def refused(scene: Stage) -> str:
    found = scene.actor.reservations.rejected(scene.workers)
    return found.words if found is not None else ""


async def test_it_is_made_its_nodes_change_and_it_goes() -> None:
    async with stage(nodesets.nodeset(), "compute-0", "compute-1") as scene:
        assert await scene.act(made("compute-0", "compute-1"))
        first = scene.slurm.reservations[NAME]
        assert (first["node_list"], first["users"]) == ("compute-[0-1]", "slurm")
        assert await scene.act(SetReservation(NAME, ("compute-1",), FLAGS, WHY))
        then = scene.slurm.reservations[NAME]
        assert (then["node_list"], then["end_time"]) == ("compute-1", first["end_time"])
        assert await scene.act(DeleteReservation(NAME, WHY))
        assert not scene.slurm.reservations
        assert await scene.act(DeleteReservation(NAME, WHY)), "one that is gone is gone"


async def test_what_slurmctld_refuses_is_remembered_until_it_takes_it() -> None:
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        assert not await scene.act(made("compute-0", start=-7200, end=3600))
        assert "Invalid time" in refused(scene)
        assert await scene.act(made("compute-0"))
        assert refused(scene) == ""


async def test_a_slurmrestd_that_does_not_answer_has_refused_nothing() -> None:
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        scene.rest.fault = Fault.UNAVAILABLE
        assert not await scene.act(made("compute-0"))
        assert refused(scene) == ""


async def test_our_own_reservation_does_not_keep_the_record_of_a_node() -> None:
    async with stage(nodesets.nodeset(), "compute-0", "compute-1") as scene:
        scene.slurm.nodes["compute-0"].flags.add("DRAIN")
        assert await scene.act(made("compute-0", "compute-1"))
        assert await scene.act(DeleteNodeRecord("compute-0", WHY))
        assert scene.slurm.reservations[NAME]["node_list"] == "compute-1"


async def test_reservations_are_asked_for_while_somebody_needs_them() -> None:
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        heard = asyncio.Event()
        mirror = ReservationMirror(heard.set)
        running = asyncio.ensure_future(mirror.run())
        try:
            mirror.endpoint(scene.link.client)
            await asyncio.sleep(0)
            assert isinstance(mirror.records, Unknown)
            assert not mirror.has_answered
            mirror.need("slurm/compute", True)
            await asyncio.wait_for(heard.wait(), 30)
            assert isinstance(mirror.records, Known)
            assert mirror.has_answered
            heard.clear()
            await scene.act(made("compute-0"))
            await mirror.poll()
            assert heard.is_set()
            assert isinstance(mirror.records, Known)
            assert mirror.records.value[NAME].nodes == {"compute-0"}
            heard.clear()
            await mirror.poll()
            assert not heard.is_set(), "nothing new"
            mirror.need("slurm/compute", False)
            assert isinstance(mirror.records, Unknown)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
