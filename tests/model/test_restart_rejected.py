"""Slurmctld is restarted for files with which it does not come up."""

from __future__ import annotations

import asyncio

import pytest

from fault_plans.logs import logging
from fault_plans.plan import Layout
from fault_plans.promises import final_state as expected
from fault_plans.world import GROUP, World
from penstock.simulation.event_loop import simulate
from penstock.simulation.slurm.reconfigure import ENDS, HANGS, REBINDS
from support.mutations import restarts_are_not_judged

BEFORE_S = 400.0
"""By then slurmctld is judged, also one that is silent, and has come up with the files put back."""


async def _run(option: str) -> bool:
    """Whether slurmctld runs again some minutes after it got such files; nobody corrects them."""
    world = World(1, Layout())
    world.declare(1)
    world.operator()
    await asyncio.sleep(60.0)
    assert expected.missing(world) == []
    controller = f"{GROUP}/controllers/slurm"
    world.ask("PATCH", controller, {"spec": {"extraConf": f"{REBINDS},{option}\n"}})
    await asyncio.sleep(BEFORE_S)
    runs = world.machines.runs("slurm", "slurmctld")
    await world.crash(world.processes[0])
    return runs


@pytest.mark.parametrize("option", [ENDS, HANGS])
def test_slurmctld_comes_up_again_with_its_last_good_files(option: str) -> None:
    with logging(show=False):
        assert simulate(_run(option))


@pytest.mark.parametrize("option", [ENDS, HANGS])
def test_it_stays_down_where_its_start_is_not_judged(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarts_are_not_judged(monkeypatch)
    with logging(show=False):
        assert not simulate(_run(option))
