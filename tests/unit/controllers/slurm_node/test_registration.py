"""Stand-in records that a killed operator left in Slurm."""

from __future__ import annotations

from penstock.simulation.event_loop import simulate
from unit.controllers.slinky.test_accounting import Lab, operated


def leave_stand_ins(lab: Lab) -> None:
    """As an operator does that is killed between the two calls that make them."""
    conf = "NodeName=penstock-register-0,penstock-register-1 NodeAddr=10.0.0.8,10.0.0.9"
    lab.world.slurm.ctld.new_node(f"{conf} State=FUTURE")


def test_an_operator_that_starts_removes_stand_ins_that_no_list_shows() -> None:
    """They would take room of MaxNodeCount until the next worker is forgotten."""

    async def play() -> None:
        async with operated() as lab:
            await lab.ready("nodesets", "compute")
            await lab.world.crash(lab.world.processes[0])
            leave_stand_ins(lab)
            lab.world.operator()
            await lab.until(lambda: not lab.world.slurm.ctld.future, seconds=60)
            assert set(lab.world.slurm.ctld.nodes) == {"compute-0"}

    simulate(play())
