"""A SlurmCluster in a namespace so full that nothing is in memory before it is read."""

from __future__ import annotations

import pytest

from penstock.kube.cache import on_demand
from penstock.simulation.faults import Fault
from unit.controllers.nebius.lab import OLDER, SHAPES, SPACE, Lab, played


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_demand, "LARGEST", 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_cluster_comes_to_rest(shape: str) -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        await lab.settled()
        assert await lab.settled() == []

    played(play, shape)


def test_another_process_changes_nothing() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        await lab.settled()
        await lab.world.crash(lab.world.processes[-1])
        lab.world.operator()
        assert await lab.settled() == []

    played(play, OLDER)


def test_workers_start_though_slurm_has_not_answered_a_new_process() -> None:
    """Each of some twenty objects is asked for when it is needed: that takes part of a second."""

    async def play(lab: Lab) -> None:
        await lab.available()
        await lab.world.crash(lab.world.processes[-1])
        lab.world.slurm_fault(Fault.HANG, SPACE)
        lab.world.operator()
        lab.world.scale(2)
        await lab.until(lambda: lab.pods("worker-") == ["worker-0", "worker-1"], 3)

    played(play, OLDER, replicas=0)
