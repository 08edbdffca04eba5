"""ActiveChecks drain no more than the declared share of a SlurmCluster's nodes."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.simulation.event_loop import simulate
from penstock.simulation.faults import Fault
from unit.controllers.nebius.lab import CLUSTER, CURRENT, JOBS, SPACE, Lab, operated, played
from unit.controllers.nebius.test_checks import (
    FIRST,
    GPU,
    NET,
    RESERVE,
    again,
    calls,
    condition,
    declare,
    finish,
    reasons,
    run_status,
    submit,
)

SHARE = "check.penstock.dev/max-drained"
POSTPONED = "check.penstock.dev/postponed"
CLUSTER_PATH = f"/apis/slurm.nebius.ai/v1/namespaces/{SPACE}/slurmclusters/{CLUSTER}"


def share(lab: Lab, text: str) -> None:
    """`kubectl annotate slurmcluster`."""
    lab.world.ask("PATCH", CLUSTER_PATH, {"metadata": {"annotations": {SHARE: text}}})


def postponed(lab: Lab, job: str = FIRST) -> str:
    return lab.get(JOBS, job)["metadata"]["annotations"].get(POSTPONED, "")


def resume(lab: Lab, node: str) -> None:
    """`scontrol update state=resume`, by a user."""
    lab.world.slurm.ctld.update_node(node, ["RESUME"], {}, user="alice")


def events(lab: Lab) -> set[str]:
    """Reasons of all events."""
    every: list[Json] = lab.world.server.objects("events.k8s.io/events", SPACE)
    return {one["reason"] for one in every}


async def all_fail(lab: Lab, name: str = GPU, **spec: Any) -> list[str]:
    """A check fails on all nodes at once; their names."""
    jobs = submit(lab, name)
    declare(lab, name, **spec)
    await lab.until(lambda: run_status(lab, name) == "InProgress")
    for one in jobs:
        finish(lab, one, "FAILED")
    await lab.until(lambda: run_status(lab, name) == "Failed")
    return sorted(node for one in jobs for node in one.nodes)


def test_a_check_that_fails_everywhere_drains_one_of_four_and_the_next_after_its_repair():
    """S113."""

    async def play(lab: Lab) -> None:
        await lab.available()
        nodes = await all_fail(lab)
        drained = [*reasons(lab)]
        assert len(drained) == 1
        rest = [one for one in nodes if one not in drained]
        assert all(one in postponed(lab) or "[" in postponed(lab) for one in rest)
        await lab.until(lambda: condition(lab, "Ready").get("reason") == "DrainsPostponed")
        message = condition(lab, "Ready")["message"]
        assert "3 Slurm nodes failed the check and stay in service" in message
        assert "at most 10% of the Slurm nodes" in message
        await lab.until(lambda: "CheckPostponed" in events(lab))
        await lab.settled(60)
        before = len(calls(lab, "reservations", "node/", "/job/"))
        assert await lab.settled(60) == []
        assert [*reasons(lab)] == drained
        assert len(calls(lab, "reservations", "node/", "/job/")) == before
        resume(lab, drained[0])
        await lab.until(lambda: len(reasons(lab)) == 1 and [*reasons(lab)] != drained)
        assert next(iter(reasons(lab))) in rest

    played(play, replicas=4)


def test_a_raised_share_and_a_new_process_drain_the_rest():
    async def run() -> None:
        lab = Lab(CURRENT)
        lab.world.declare(4)
        async with operated(lab):
            await lab.available()
            nodes = await all_fail(lab)
            await lab.until(lambda: postponed(lab))
        assert len(reasons(lab)) == 1
        async with operated(lab):
            share(lab, "3")
            await lab.until(lambda: len(reasons(lab)) == 3)
            await lab.settled(30)
            assert len(reasons(lab)) == 3
            share(lab, "100%")
            await lab.until(lambda: sorted(reasons(lab)) == nodes)
            await lab.until(lambda: not postponed(lab))
            await lab.until(lambda: condition(lab, "Ready").get("status") == "True")
            await lab.settled(30)
            assert await lab.settled() == []

    simulate(run())


def test_drains_of_users_take_no_room_and_stay():
    async def play(lab: Lab) -> None:
        await lab.available()
        theirs, *others = sorted(lab.world.slurm.ctld.nodes)
        lab.world.slurm.drained_by_hand(theirs, "bad cable")
        await all_fail(lab)
        found = reasons(lab)
        assert found.pop(theirs) == "bad cable"
        assert len(found) == 1
        assert {*found} <= {*others}

    played(play, replicas=4)


def test_two_checks_have_one_share():
    async def play(lab: Lab) -> None:
        await lab.available()
        share(lab, "2")
        await all_fail(lab)
        assert len(reasons(lab)) == 2
        await all_fail(lab, NET)
        assert len(reasons(lab)) == 2

    played(play, replicas=4)


def test_a_postponed_node_that_passes_later_is_not_drained():
    async def play(lab: Lab) -> None:
        await lab.available()
        nodes = await all_fail(lab)
        drained = [*reasons(lab)]
        (good, *_) = (one for one in nodes if one not in drained)
        ctld = lab.world.slurm.ctld
        later = ctld.run(good, name=GPU)
        lab.world.jobs.reports["now"] = f"slurm-job-id={later.id}\n"
        again(lab, GPU, "now")
        await lab.until(lambda: run_status(lab) == "InProgress")
        finish(lab, later)
        await lab.until(lambda: run_status(lab) == "Complete")
        share(lab, "100%")
        await lab.until(lambda: len(reasons(lab)) == 3)
        await lab.settled(60)
        assert good not in reasons(lab)

    played(play, replicas=4)


def test_a_postponed_node_that_a_user_drains_is_the_users():
    async def play(lab: Lab) -> None:
        await lab.available()
        nodes = await all_fail(lab)
        theirs = next(one for one in nodes if one not in reasons(lab))
        lab.world.slurm.drained_by_hand(theirs, "bad cable")
        share(lab, "100%")
        await lab.until(lambda: len(reasons(lab)) == 4)
        assert reasons(lab)[theirs] == "bad cable"
        resume(lab, theirs)
        await lab.settled(60)
        assert theirs not in reasons(lab)

    played(play, replicas=4)


def test_reservations_of_checks_are_within_the_share_as_well():
    async def play(lab: Lab) -> None:
        await lab.available()
        await all_fail(lab, failureReactions=RESERVE)
        ctld = lab.world.slurm.ctld
        assert len(ctld.reservations) == 1
        assert not reasons(lab)
        await lab.settled(60)
        assert len(ctld.reservations) == 1
        share(lab, "2")
        await lab.until(lambda: len(ctld.reservations) == 2)

    played(play, replicas=4)


@pytest.mark.parametrize("fault", [Fault.EMPTY_NODES, Fault.HALF_NODES])
def test_a_list_that_lacks_nodes_makes_no_room(fault: Fault):
    async def play(lab: Lab) -> None:
        await lab.available()
        await all_fail(lab)
        assert len(reasons(lab)) == 1
        jobs = submit(lab, NET)
        declare(lab, NET)
        await lab.until(lambda: run_status(lab, NET) == "InProgress")
        lab.world.slurm_fault(fault, SPACE)
        for one in jobs:
            finish(lab, one, "FAILED")
        await lab.settled(60)
        assert len(reasons(lab)) == 1
        lab.world.slurm_fault(Fault.NONE, SPACE)
        share(lab, "2")
        await lab.until(lambda: len(reasons(lab)) == 2)

    played(play, replicas=4)


@pytest.mark.parametrize("text", ["", "0", "half", "10 %", "120%"])
def test_a_share_that_is_none_is_the_default_one(text: str):
    """Admission rejects it, where it is installed."""

    async def play(lab: Lab) -> None:
        await lab.available()
        share(lab, text)
        await all_fail(lab)
        await lab.settled(30)
        assert len(reasons(lab)) == 1

    played(play, replicas=3)
