"""The bench's own arithmetic and its stand-ins; what it measures is measured by running it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from bench.fleet import growth, sizes
from bench.fleet.operator import Counts
from bench.fleet.site import BARE, renewed
from bench.fleet.slurm import FleetSlurm
from bench.plot import Panel, svg, ticks
from bench.settled import Shape, fleet
from penstock.decide.nodeset.plan import plan
from penstock.decide.plan_cache import PlanCache
from penstock.slurm.rest.client import Slurmrestd
from support import nodesets


@pytest.mark.parametrize(
    ("top", "rows"),
    [(0.0, [0, 1]), (1.0, [0, 0.5, 1]), (4.2, [0, 2, 4, 6]), (250, [0, 100, 200, 300])],
)
def test_an_axis_has_a_few_round_numbers_up_to_its_highest_value(top: float, rows: list[float]):
    assert ticks(top) == pytest.approx(rows)


def test_a_plot_has_a_point_for_each_size_and_a_line_for_the_limit():
    drawn = svg([Panel("Memory", "MiB", [(10, 60), (100, 70), (1000, 90)], limit=250)], "workers")
    assert drawn.count("<circle") == 3
    assert "stroke-dasharray" in drawn


def test_the_growth_plot_takes_the_figures_of_both_benches():
    def figures(*of: int) -> dict[str, Any]:
        named = {
            sizes.figure_name(what, size): {"median": size}
            for size in of
            for what in (sizes.CHANGE, sizes.CPU, sizes.MEMORY)
        }
        return {"figures": named}

    assert growth.plot({"fleet": figures(10)}) is None
    drawn = growth.plot({"fleet": figures(10, 1000), "fleet-large": figures(5000)})
    assert drawn is not None
    assert drawn.count("<circle") == 3 * len(growth.PANELS)


def test_counts_of_a_stretch_are_what_came_after_its_beginning():
    before = Counts(Counter({"create pods": 2, "get pods": 1}), 3, 1)
    after = Counts(Counter({"create pods": 5, "get pods": 4, "patch nodesets": 1}), 7, 2)
    since = after.since(before)
    assert since == Counts(Counter({"create pods": 3, "get pods": 3, "patch nodesets": 1}), 4, 1)
    assert since.writes == 4


def test_the_bare_client_gets_a_pod_as_it_was_asked_for():
    pod = {
        "metadata": {"name": "worker-1", "namespace": "fleet", "uid": "u", "labels": {"a": "b"}},
        "spec": {"nodeName": "fleet-0001", "containers": [{"name": "slurmd"}]},
        "status": {"phase": "Running"},
    }
    assert renewed(pod) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "worker-1", "namespace": BARE, "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "slurmd"}]},
    }


async def test_the_fleet_s_slurm_answers_whole_records_that_follow_their_pods():
    async with FleetSlurm() as slurm:
        client = Slurmrestd(slurm.url, lambda: "token")
        pods = [nodesets.pod(0), nodesets.pod(1)]
        for pod in pods:
            slurm.started(pod)
        listed = await client.nodes()
        assert listed is not None
        assert {node.name: node.state for node in listed.items} == {
            name: frozenset({"IDLE", "DYNAMIC_NORM"}) for name in ("compute-0", "compute-1")
        }
        slurm.stopping(pods[0])
        again = await client.nodes()
        assert again is not None
        assert ["DOWN" in node.state for node in again.items] == [True, False]


async def test_the_fleet_s_slurm_answers_are_as_large_as_real_ones():
    async with FleetSlurm() as slurm:
        slurm.started(nodesets.pod(0))
        client = Slurmrestd(slurm.url, lambda: "token")
        await client.nodes()
        (record,) = slurm.records()
        assert len(json.loads(record)) > 50


@pytest.mark.parametrize("shape", Shape)
def test_what_decisions_are_measured_on_is_settled(shape: Shape):
    """Else the bench measures something else, or ends."""
    assert plan(fleet(20, shape), PlanCache()).actions == ()
