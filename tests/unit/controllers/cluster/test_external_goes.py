"""An external slurmctld whose cluster is deleted here: it and its jobs go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from fault_plans.world import CORE, GROUP, SPACE
from penstock.decide.observed.deletion import PATIENCE_S
from penstock.simulation.event_loop import simulate
from penstock.simulation.faults import Fault
from penstock.simulation.slurm.slurmctld import SimulatedJob
from unit.controllers.cluster.test_external import OUTSIDE, keys, outside, ready
from unit.controllers.slinky.test_accounting import Lab, operated

HELM = ("controllers/slurm", "nodesets/compute", "restapis/slurm")
"""The order of `helm uninstall`: kinds that it does not know, by name."""


@asynccontextmanager
async def served() -> AsyncGenerator[Lab]:
    """A lab with a free worker of an external slurmctld."""
    async with operated() as lab:
        outside(lab)
        keys(lab)
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmctldAnswers")
        await lab.until(lambda: ready(lab) and lab.world.slurm.free_nodes())
        yield lab


def played(play: Callable[[Lab, SimulatedJob], Awaitable[None]]) -> None:
    """Play with a worker of an external slurmctld that has a job."""

    async def run() -> None:
        async with served() as lab:
            job = lab.world.slurm.submit(1)
            assert job is not None
            await asyncio.sleep(10)
            await play(lab, job)
            assert not lab.world.slurm.lost_jobs
            assert not lab.world.promises.broken

    simulate(run())


def delete(lab: Lab, *paths: str) -> None:
    for path in paths:
        lab.world.ask("DELETE", f"{GROUP}/{path}", {})


def gone(lab: Lab) -> bool:
    return not any(
        lab.world.server.objects(f"slinky.slurm.net/{plural}", SPACE)
        for plural in ("controllers", "nodesets", "restapis")
    )


@pytest.mark.parametrize(
    "order",
    [HELM, tuple(reversed(HELM)), ("restapis/slurm", "controllers/slurm", "nodesets/compute")],
    ids=lambda order: order[0].partition("/")[0],
)
def test_a_job_of_an_external_slurmctld_ends_before_its_worker_goes(order: tuple[str, ...]) -> None:
    """Whichever object goes first."""

    async def play(lab: Lab, job: SimulatedJob) -> None:
        worker = lab.uid("compute-0")
        delete(lab, *order)
        await lab.until(lambda: "DRAIN" in lab.world.slurm.ctld.nodes["compute-0"].flags)
        await asyncio.sleep(2 * PATIENCE_S)
        assert lab.uid("compute-0") == worker
        assert "keeps running" in lab.says("nodesets", "compute")[2]
        lab.world.slurm.finish(job)
        await lab.until(lambda: not lab.uid("compute-0") and gone(lab))
        assert "compute-0" not in lab.world.slurm.ctld.nodes

    played(play)


def test_an_operator_that_starts_later_asks_by_what_the_nodeset_remembers() -> None:
    """The Controller is long gone, and the process that had seen it too."""

    async def play(lab: Lab, job: SimulatedJob) -> None:
        delete(lab, "controllers/slurm")
        await asyncio.sleep(60)
        await lab.world.crash(lab.world.processes[0])
        lab.world.operator()
        await asyncio.sleep(60)
        delete(lab, "nodesets/compute", "restapis/slurm")
        await lab.until(lambda: "DRAIN" in lab.world.slurm.ctld.nodes["compute-0"].flags)
        await asyncio.sleep(600)
        assert lab.uid("compute-0")
        lab.world.slurm.finish(job)
        await lab.until(lambda: not lab.uid("compute-0") and gone(lab))

    played(play)


def test_an_external_slurmctld_that_cannot_be_asked_is_waited_for_but_not_for_ever() -> None:
    """The end of the wait is told, survives the process, and the namespace can go."""

    async def run() -> None:
        async with served() as lab:
            assert lab.world.slurm.submit(1) is not None
            await asyncio.sleep(10)
            delete(lab, *HELM)
            await asyncio.sleep(PATIENCE_S)
            lab.world.slurm_fault(Fault.CONTROLLER_DOWN, SPACE)
            await lab.until(lambda: "has not answered since" in lab.says("nodesets", "compute")[2])
            told = lab.says("nodesets", "compute")[2]
            assert f"kubectl delete pods -n {SPACE} -l " in told
            await asyncio.sleep(PATIENCE_S / 2)
            await lab.world.crash(lab.world.processes[0])
            lab.world.operator()
            await asyncio.sleep(PATIENCE_S / 2 - 300)
            assert lab.uid("compute-0")
            await lab.until(lambda: not lab.uid("compute-0"), seconds=700)
            await lab.until(lambda: gone(lab), seconds=700)

    simulate(run())


def test_a_wait_begins_anew_once_an_external_slurmctld_answered_again() -> None:
    """A restart of slurmctld now and then adds up to nothing."""

    async def play(lab: Lab, job: SimulatedJob) -> None:
        delete(lab, *HELM)
        for _ in range(4):
            lab.world.slurm_fault(Fault.CONTROLLER_DOWN, SPACE)
            await asyncio.sleep(PATIENCE_S / 2)
            lab.world.slurm_fault(Fault.NONE, SPACE)
            await asyncio.sleep(60)
        assert lab.uid("compute-0")
        lab.world.slurm.finish(job)
        await lab.until(lambda: not lab.uid("compute-0") and gone(lab))

    played(play)


def test_pods_that_somebody_deletes_end_the_wait_at_once() -> None:
    """As the condition says."""

    async def run() -> None:
        async with served() as lab:
            lab.world.slurm_fault(Fault.CONTROLLER_DOWN, SPACE)
            delete(lab, *HELM)
            await asyncio.sleep(60)
            assert lab.uid("compute-0")
            lab.world.ask("DELETE", f"{CORE}/pods/compute-0", {})
            await lab.until(lambda: gone(lab), seconds=700)

    simulate(run())


def test_a_restapi_that_is_deleted_alone_goes() -> None:
    """After a moment in which the NodeSets' deletion might follow."""

    async def play(lab: Lab, job: SimulatedJob) -> None:
        delete(lab, "restapis/slurm")
        await asyncio.sleep(3)
        assert lab.world.find("slinky.slurm.net/restapis", "slurm")
        await lab.until(lambda: not lab.world.find("slinky.slurm.net/restapis", "slurm"), 30)
        assert lab.uid("compute-0")
        lab.world.slurm.finish(job)

    played(play)


def test_another_cluster_of_the_same_name_begins_with_nothing_of_the_former_one() -> None:
    """Neither its nodes nor its slurmrestd."""

    async def play(lab: Lab, job: SimulatedJob) -> None:
        delete(lab, "controllers/slurm")
        await lab.until(lambda: not lab.world.find("slinky.slurm.net/controllers", "slurm"))
        # External from its first moment: else it may have Services first, which go then.
        lab.world.make(SPACE, "controllers", "Controller", "slurm", OUTSIDE)
        lab.world.declare_restapi(SPACE)
        lab.world.declare_nodeset(1, 0)
        lab.world.slurm.start()
        lab.world.slurm_fault(Fault.CONTROLLER_DOWN, SPACE)
        seen: list[str] = []
        for _ in range(50):
            seen.append(lab.says("controllers", "slurm")[1])
            await asyncio.sleep(0.1)
        assert "SlurmctldAnswers" not in seen[1:], seen
        lab.world.slurm_fault(Fault.NONE, SPACE)
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmctldAnswers")
        lab.world.slurm.finish(job)

    played(play)
