"""What fault plans found, each as short as it can be told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from fault_plans.pool import play_one
from fault_plans.world import CORE, GROUP, NODESET, SPACE, World
from penstock.controllers.partition.changes import AppliedPartitions, PartitionChanges
from penstock.kube.client.transport import Request
from penstock.simulation.apiserver import Trouble
from penstock.simulation.slurm.cluster import Knowledge
from penstock.simulation.slurm.rest_replies import RestRequest, SlurmAnswers
from support.stories import story, well


def test_a_refused_delete_is_not_sent_again_without_asking_slurm_again() -> None:
    """The node was drained when Slurm was asked; while the server was busy a job came to it."""

    async def tell(world: World) -> None:
        node = f"{NODESET}-1"

        def resumed(request: Request) -> bool:
            if request.method != "DELETE" or world.slurm.jobs_on(node):
                return False
            world.slurm.resumed_by_hand(node)
            world.slurm.submit(2)
            return True

        for process in world.processes:
            process.connection.trouble(Trouble(status=500, when=resumed))
        world.scale(1)
        await asyncio.sleep(60.0)
        assert world.promises.broken == []
        assert world.slurm.jobs_on(node)
        world.heal()
        await well(world)

    assert story(tell).slurm.lost_jobs == []


def test_a_drain_that_a_request_of_the_same_moment_left_alone_is_still_asked_for() -> None:
    """The check forgot any drain that the sender could not have seen. Found by plan 369."""
    node = f"{NODESET}-0"
    path = f"/slurm/v0.0.45/node/{node}"

    async def tell(world: World) -> None:
        answers = SlurmAnswers(world.slurm.ctld)
        now = asyncio.get_running_loop().time()
        knew = Knowledge(listed_at=now - 0.02, sent_at=now - 0.01)
        world.slurm.drained_by_hand(node, "bad disk")
        comment = RestRequest("POST", path, token="any", body=b'{"comment":"something"}')
        world.promises.heard(SPACE, comment, answers.answer, knew)
        assert world.slurm.drains == {node: "bad disk"}
        undrain = RestRequest("POST", path, token="any", body=b'{"state":["UNDRAIN"]}')
        world.promises.heard(SPACE, undrain, answers.answer, knew)
        assert world.slurm.drains == {}
        assert world.promises.broken == []

    story(tell)


def test_a_key_that_goes_in_the_middle_of_a_look_ends_slurmctld_once_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """slurmctld's pod was made anew for no key first. Found by plan 3010 of a focused hunt."""
    bring = cast("Any", PartitionChanges).apply
    due: list[Callable[[], object]] = []

    async def meanwhile(self: PartitionChanges[Any, Any], *given: Any) -> AppliedPartitions[Any]:
        if due:
            due.pop()()
            await asyncio.sleep(0.5)
        return await bring(self, *given)

    monkeypatch.setattr(PartitionChanges, "apply", meanwhile)

    async def tell(world: World) -> None:
        due.append(lambda: world.ask("DELETE", f"{CORE}/secrets/slurm-auth-jwt", {}))
        body = {"spec": {"extraConf": "# once more\n"}}
        world.ask("PATCH", f"{GROUP}/controllers/slurm", body)
        await asyncio.sleep(30.0)
        assert not due
        await well(world)

    story(tell)


@pytest.mark.parametrize("seed", [3485, 3487, 4664, 5012, 7989, 9562, 31886, 33221, 36835])
def test_a_plan_that_broke_a_promise_once_holds_it(seed: int) -> None:
    """Each of these plans found a fault, which is fixed."""
    assert play_one(seed).broken == ()
