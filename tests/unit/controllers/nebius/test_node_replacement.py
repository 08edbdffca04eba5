"""Replaced machines, by the whole operator on simulated nodes and Slurm. S174."""

from __future__ import annotations

import asyncio

import pytest

from fault_plans.actions.replacements import Replacements
from penstock.api.cluster.marks import REPLACEMENTS
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.names import retest
from penstock.decide.node_replacement import PREFIX, Replacement, read_records
from penstock.simulation.event_loop import simulate
from unit.controllers.nebius.lab import (
    CLUSTER,
    CURRENT,
    JOBS,
    MACHINES,
    SHAPES,
    SPACE,
    Lab,
    operated,
    played,
)
from unit.controllers.nebius.test_checks import reserve
from unit.controllers.nebius.test_node_outage import (
    host_of,
    is_cordoned,
    mark,
    reason,
    status,
    with_job,
)

NODES = "/nodes"


def replacements(lab: Lab) -> Replacements:
    found = lab.world.replacements = lab.world.replacements or Replacements(lab.world)
    return found


def uid(lab: Lab, name: str) -> str:
    found = lab.world.server.find(NODES, "", name)
    return str(found["metadata"]["uid"]) if found is not None else ""


def records(lab: Lab) -> tuple[Replacement, ...]:
    notes: Json = lab.cluster["metadata"].get("annotations") or {}
    return read_records(notes.get(REPLACEMENTS, "")) or ()


def events(lab: Lab, name: str = "MachineNotReplaced") -> list[str]:
    every = lab.world.server.objects("events.k8s.io/events")
    return [one["note"] for one in every if one["reason"] == name]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_broken_machine_is_replaced_once_its_job_has_ended_and_its_worker_comes_back(shape: str):
    async def play(lab: Lab) -> None:
        await lab.available()
        machines = replacements(lab)
        machines.allow(SPACE)
        job, worker, name = with_job(lab)
        before = uid(lab, name)
        assert machines.break_machine(SPACE, worker) == name
        await lab.until(lambda: is_cordoned(lab, name))
        await lab.settled(60)
        assert uid(lab, name) == before, "its job runs"
        assert mark(lab, name)["purpose"] == "replacement"
        lab.world.slurm.finish(job)
        await lab.until(lambda: uid(lab, name) not in ("", before), 300)
        await lab.until(lambda: not reason(lab, worker), 300)
        await lab.available()
        await lab.until(lambda: [one.ended for one in records(lab)] == [True])
        assert lab.world.slurm.lost_jobs == []
        assert machines.deleted == [before]
        assert await lab.settled() == []

    played(play, shape)


CHECK = "all-reduce"


def declare_check(lab: Lab, *, suspend: bool = False) -> None:
    spec: Json = {
        "name": CHECK,
        "slurmClusterRefName": CLUSTER,
        "checkType": "slurmJob",
        "schedule": "0 0 1 1 *",
        "suspend": suspend,
        "runAfterCreation": False,
        "slurmJobSpec": {"eachWorkerJobs": True, "sbatchScript": "#!/bin/bash\ntrue\n"},
        "failureReactions": {"drainSlurmNode": {"drainReasonPrefix": PREFIX}},
    }
    path = f"/apis/slurm.nebius.ai/v1alpha1/namespaces/{SPACE}/activechecks"
    lab.make(path, "ActiveCheck", CHECK, spec=spec)


async def replaced_for_a_check(lab: Lab, report: str = "") -> tuple[str, str]:
    """A worker that a check in jobs drained, and the Job that tests its next machine.

    The Job runs until it has something to report.
    """
    machines = replacements(lab)
    machines.allow(SPACE)
    worker = lab.world.slurm.free_nodes()[0].name
    name = host_of(lab, worker)
    before = uid(lab, name)
    run = retest(CHECK, before, worker)
    if report:
        lab.world.jobs.reports[run] = report
    else:
        lab.world.jobs.held.add(run)
    assert machines.break_machine(SPACE, worker, f"{CHECK}: job 1 [slurm_job]") == name
    await lab.until(lambda: uid(lab, name) not in ("", before), 300)
    return worker, run


@pytest.mark.parametrize("end", ["COMPLETED", "FAILED"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_check_in_jobs_tests_the_next_machine_before_jobs_of_users(shape: str, end: str):
    async def play(lab: Lab) -> None:
        await lab.available()
        declare_check(lab)
        await lab.until(lambda: lab.find("batch/cronjobs", CHECK))
        worker, run = await replaced_for_a_check(lab)
        ctld = lab.world.slurm.ctld
        await lab.until(lambda: lab.find(JOBS, run), 300)
        (container,) = lab.get(JOBS, run)["spec"]["template"]["spec"]["containers"]
        assert {"name": "ACTIVE_CHECK_NODE", "value": worker} in container["env"]
        await lab.settled(60)
        assert reason(lab, worker), "no job of a user starts before"
        reserve(lab, worker, CHECK)
        job = ctld.run(worker, name=CHECK)
        lab.world.jobs.reports[run] = f"slurm-job-id={job.id}\n"
        lab.world.jobs.held.discard(run)
        await lab.until(lambda: [one.ended for one in records(lab)] == [True])
        assert not reason(lab, worker)
        ctld.finish(job, end)
        await lab.until(lambda: not ctld.reservations)
        failed = f"{PREFIX} {CHECK}: job {job.id} [slurm_job]"
        assert reason(lab, worker) == ("" if end == "COMPLETED" else failed)

    played(play, shape)


@pytest.mark.parametrize("declared", [True, False])
def test_a_check_that_tests_nothing_keeps_no_worker(declared: bool):
    """The image of the original takes no drained node; a suspended check is not started."""

    async def play(lab: Lab) -> None:
        await lab.available()
        declare_check(lab, suspend=not declared)
        await lab.until(lambda: lab.find("batch/cronjobs", CHECK))
        skipped = "slurm-skipped-reason=no Slurm node takes jobs now\n"
        worker, run = await replaced_for_a_check(lab, skipped)
        await lab.until(lambda: not reason(lab, worker), 300)
        assert (lab.find(JOBS, run) is not None) is declared
        await lab.until(lambda: [one.ended for one in records(lab)] == [True])
        assert await lab.settled() == []

    played(play)


def test_without_the_annotation_no_machine_is_replaced():
    async def play(lab: Lab) -> None:
        await lab.available()
        worker = lab.world.slurm.free_nodes()[0].name
        name = replacements(lab).break_machine(SPACE, worker)
        await lab.settled(120)
        assert not is_cordoned(lab, name)
        assert records(lab) == ()

    played(play)


@pytest.mark.parametrize("words", ["[hardware_problem] mine", "[node_problem] c: x [hc_program]"])
def test_drains_of_users_and_of_other_checks_replace_nothing(words: str):
    async def play(lab: Lab) -> None:
        await lab.available()
        replacements(lab).allow(SPACE)
        worker = lab.world.slurm.free_nodes()[0].name
        lab.world.slurm.drained_by_hand(worker, words)
        await lab.settled(120)
        assert not is_cordoned(lab, host_of(lab, worker))
        assert records(lab) == ()

    played(play)


def test_a_check_that_passes_before_the_machine_goes_keeps_it():
    async def play(lab: Lab) -> None:
        await lab.available()
        machines = replacements(lab)
        machines.allow(SPACE)
        job, worker, name = with_job(lab)
        machines.break_machine(SPACE, worker)
        await lab.until(lambda: is_cordoned(lab, name))
        lab.world.slurm.resumed_by_hand(worker)
        await lab.until(lambda: not is_cordoned(lab, name))
        assert records(lab) == ()
        assert mark(lab, name) == {}
        lab.world.slurm.finish(job)
        await lab.until(lambda: not reason(lab, worker))
        assert machines.deleted == []

    played(play)


def test_a_condition_has_the_machine_of_a_worker_replaced():
    async def play(lab: Lab) -> None:
        await lab.available()
        machines = replacements(lab)
        machines.allow(SPACE)
        worker = lab.world.slurm.free_nodes()[0].name
        name = host_of(lab, worker)
        before = uid(lab, name)
        lab.world.promises.replaces = lambda node: machines.deleted.append(node["metadata"]["uid"])
        one = {"type": "SlurmNodeReplace", "status": "True", "reason": "Broken"}
        status(lab, name, {"conditions": [one]})
        await lab.until(lambda: uid(lab, name) not in ("", before), 300)
        await lab.until(lambda: [one.ended for one in records(lab)] == [True])
        assert machines.deleted == [before]
        await lab.available()
        await lab.until(lambda: not reason(lab, worker))

    played(play)


def test_no_more_machines_are_replaced_within_an_hour_than_are_declared():
    async def play(lab: Lab) -> None:
        await lab.available()
        machines = replacements(lab)
        machines.allow(SPACE, "1")
        first, second = (one.name for one in lab.world.slurm.free_nodes())
        machines.break_machine(SPACE, first)
        await lab.until(lambda: [one.ended for one in records(lab)] == [True], 400)
        machines.break_machine(SPACE, second)
        await lab.settled(3000)
        assert len(machines.deleted) == 1
        await lab.until(lambda: len(machines.deleted) == 2, 900)
        await lab.until(lambda: not reason(lab, second), 300)

    played(play)


def test_no_machine_is_replaced_while_checks_have_too_many_nodes_drained():
    async def play(lab: Lab) -> None:
        await lab.available()
        machines = replacements(lab)
        first, second = (one.name for one in lab.world.slurm.free_nodes())
        machines.break_machine(SPACE, first)
        machines.break_machine(SPACE, second)
        machines.allow(SPACE)
        await lab.until(lambda: events(lab))
        assert "Find out whether the check is at fault" in events(lab)[0]
        await lab.settled(60)
        assert records(lab) == ()
        assert machines.deleted == []

    played(play)


def test_a_machine_that_comes_back_is_not_replaced_again():
    async def play(lab: Lab) -> None:
        await lab.available()
        machines = replacements(lab)
        machines.allow(SPACE)
        worker = lab.world.slurm.free_nodes()[0].name
        name = host_of(lab, worker)
        for spare in MACHINES - {name}:
            cordon: Json = {"spec": {"unschedulable": True}}
            lab.world.ask("PATCH", f"/api/v1/nodes/{spare}", cordon)

        def same_machine() -> None:
            status(lab, name, {"nodeInfo": {"systemUUID": "m1"}})

        same_machine()
        await lab.settled(2)
        machines.break_machine(SPACE, worker)
        before = uid(lab, name)
        await lab.until(lambda: uid(lab, name) not in ("", before), 300)
        same_machine()
        await lab.settled(60)
        assert reason(lab, worker), "it runs on the same machine"
        await lab.until(lambda: events(lab))
        assert "has come back" in events(lab)[0]
        lab.world.slurm.resumed_by_hand(worker)
        await lab.until(lambda: [one.ended for one in records(lab)] == [True])
        machines.break_machine(SPACE, worker)
        await lab.settled(60)
        assert machines.deleted == [before]

    played(play)


def test_an_operator_that_is_killed_after_any_write_replaces_each_machine_once():
    async def play() -> None:
        lab = Lab(CURRENT)
        lab.world.declare(2)
        machines = replacements(lab)
        async with operated(lab):
            await lab.available()
        worker = lab.world.slurm.free_nodes()[0].name
        name = host_of(lab, worker)
        before = uid(lab, name)
        machines.allow(SPACE)
        machines.break_machine(SPACE, worker)
        for _ in range(80):
            process = lab.world.operator()
            start = len(lab.world.writes)
            for _ in range(300):
                await asyncio.sleep(0.02)
                written = [what for _, what in lab.world.writes[start:]]
                if any("/nodes/" in one or "slurmclusters/" in one for one in written):
                    break
            await lab.world.crash(process)
            if records(lab) and all(one.ended for one in records(lab)):
                break
        assert lab.world.promises.broken == []
        assert machines.deleted == [before]
        async with operated(lab):
            await lab.until(lambda: uid(lab, name) not in ("", before))
            await lab.available()
            await lab.until(lambda: not reason(lab, worker), 300)
            assert [one.ended for one in records(lab)] == [True]

    simulate(play())
