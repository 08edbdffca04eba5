"""Which jobs the simulation takes for lost without a fault of the operator."""

from __future__ import annotations

import pytest

from penstock.simulation.slurm.cluster import SimulatedSlurm
from penstock.simulation.slurm.slurmctld import SimulatedJob

MAIN, NEW = "PartitionName=main Nodes=ALL\n", "PartitionName=new Nodes=ALL\n"


class Stage:
    """slurmctld with the partition `main` in its file and `new` by a request, a job in each."""

    def __init__(self) -> None:
        self.slurm = SimulatedSlurm(lambda: 0.0)
        self.slurm.ctld.read(MAIN)
        self.slurm.ctld.update_partition({"name": "new"})
        self.main = self.slurm.ctld.run("a", partition="main")
        self.new = self.slurm.ctld.run("b", partition="new")

    def lost(self) -> list[SimulatedJob]:
        """Jobs that are lost when somebody has slurmctld read its file."""
        self.slurm.loses_unsaved()
        return self.slurm.lost_jobs


def test_a_partition_whose_file_is_on_its_way_loses_its_jobs() -> None:
    stage = Stage()
    assert stage.lost() == [stage.new]
    stage.slurm.ctld.read(MAIN)
    assert stage.slurm.ctld.defunct == []


def test_a_partition_that_the_folder_had_may_not_lose_its_jobs() -> None:
    stage = Stage()
    stage.slurm.ctld.has(MAIN + NEW)
    assert stage.lost() == []
    stage.slurm.ctld.read(MAIN)
    assert stage.slurm.ctld.defunct == [stage.new]


@pytest.mark.parametrize("partition", ["all", "main,new"])
def test_a_job_that_is_in_no_such_partition_alone_is_kept(partition: str) -> None:
    stage = Stage()
    stage.slurm.finish(stage.new)
    stage.slurm.ctld.run("b", partition=partition)
    assert stage.lost() == []
