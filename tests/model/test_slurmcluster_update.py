"""Update and size of a SlurmCluster's own workers, in every state of a simulated cluster."""

from __future__ import annotations

import pytest

from fault_plans.world import SPACE
from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import Change
from unit.controllers.nebius.lab import OLDER, Lab, played

LABEL = ("app.kubernetes.io/component", "worker")


class Usable:
    """Follows how few workers are in use at any time; `begin` starts the count."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.fewest = 10**9
        self.order: list[str] = []
        lab.world.server.store.listeners.append(self._changed)

    def begin(self) -> None:
        """Count from now on."""
        self.fewest, self.order = self.now(), []

    def now(self) -> int:
        """Workers that a job could get or has."""
        slurm = self._lab.world.slurms[SPACE]
        return sum(
            "DRAIN" not in node.flags and name in slurm.slurmds
            for name, node in slurm.ctld.nodes.items()
        )

    def _changed(self, change: Change) -> None:
        if change.resource != "/pods":
            return
        if change.new is None and change.key[1].startswith("worker-"):
            self.order.append(change.key[1])
        self.fewest = min(self.fewest, self.now())


def workers(lab: Lab) -> list[Json]:
    return [
        pod
        for pod in lab.world.server.objects("/pods", SPACE)
        if pod["metadata"]["labels"].get(LABEL[0]) == LABEL[1]
    ]


def images(lab: Lab) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in workers(lab)}


def declare(lab: Lab, **worker: object) -> None:
    lab.world.edit_cluster(SPACE, {"slurmNodes": {"worker": worker}})


@pytest.mark.parametrize(("size", "out"), [(10, 2), (2, 1)])
def test_twenty_percent_of_the_workers_are_replaced_at_a_time_and_busy_ones_last(
    size: int, out: int
) -> None:
    """S121: 20 % of two is one, so an update still moves."""

    async def play(lab: Lab) -> None:
        await lab.available()
        declare(lab, size=size, maxUnavailable="20%")
        await lab.until(lambda: len(lab.world.slurm.ctld.nodes) == size, 300)
        await lab.available()
        job = lab.world.slurm.ctld.run("worker-0")
        usable = Usable(lab)
        usable.begin()
        assert usable.now() == size
        declare(lab, slurmd={"image": "slurmd:2"})
        rest = {f"worker-{number}" for number in range(1, size)}
        await lab.until(lambda: set(usable.order) >= rest, 900)
        assert "worker-0" not in usable.order
        assert job.state == {"RUNNING"}
        lab.world.slurm.ctld.finish(job)
        await lab.until(lambda: images(lab) == {"slurmd:2"}, 300)
        await lab.available()
        assert usable.fewest == size - out
        assert usable.order[-1] == "worker-0"

    played(play, OLDER)


def test_fifteen_workers_by_a_patch_have_their_label_and_are_idle() -> None:
    """S120."""

    async def play(lab: Lab) -> None:
        await lab.available()
        kept = {pod["metadata"]["uid"] for pod in workers(lab)}
        declare(lab, size=15)
        await lab.until(lambda: len(workers(lab)) == 15, 300)
        await lab.available()
        assert {node.base for node in lab.world.slurm.ctld.nodes.values()} == {"IDLE"}
        assert len(lab.world.slurm.ctld.nodes) == 15
        assert kept <= {pod["metadata"]["uid"] for pod in workers(lab)}

    played(play, OLDER)
