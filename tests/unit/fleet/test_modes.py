"""The bench `modes`: what it declares, what its stand-ins show, and the names of its figures."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import msgspec
import pytest

from bench import ranges
from bench.fleet import cluster
from bench.fleet.modes import adoption, daemon, figures, keys, run, window
from bench.fleet.operator import Counts
from bench.fleet.phase import Used
from bench.fleet.slurm import FleetSlurm
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.render.slinky.accounting import slurmdbd as accounting
from penstock.slurm.rest.client import Slurmrestd
from support import nodesets

PORT = 1234
KINDS: dict[str, Any] = {one.__name__: one for one in (Accounting, Controller, NodeSet, RestApi)}


def decoded(objects: list[cluster.Json]) -> dict[str, Any]:
    """The objects of the kinds as the operator reads them, by kind and name."""
    return {
        f"{one['kind']} {one['metadata']['name']}": msgspec.convert(one, KINDS[one["kind"]])
        for one in objects
        if one["kind"] in KINDS
    }


def test_the_cluster_of_the_modes_has_an_accounting_and_a_nodeset_in_daemonset_mode():
    found = decoded(cluster.modes(PORT))
    assert found["Controller slurm"].spec.accounting_ref.name == "slurm"
    assert not accounting.has_own_entrypoint(found["Accounting slurm"])
    assert found["RestApi slurm"].spec.service.port == PORT
    assert found["NodeSet daemon"].spec.scaling_mode == "DaemonSet"
    assert found["NodeSet daemon"].spec.template.spec["nodeSelector"] == cluster.NOWHERE
    assert {found[f"NodeSet {name}"].spec.replicas for name in ("worker", "window")} == {0}


def test_the_cluster_that_is_taken_over_has_the_workers_asked_for_and_no_pvcs():
    found = decoded(adoption.chart(PORT, 50))
    assert found["NodeSet slurm-worker-compute"].spec.replicas == 50
    assert not found["Controller slurm"].spec.persistent
    assert found["RestApi slurm"].spec.service.port == PORT


def test_every_limit_is_of_a_figure_that_is_measured():
    rows = {part: dict.fromkeys(units, 1.0) for part, units in run.PARTS.items()}
    measured = {figure.name: figure for figure in run.gathered([rows, rows])}
    limits = ranges.limits(ranges.read(), run.BENCH.name)
    assert limits
    assert limits.keys() <= measured.keys()
    assert all(len(figure.values) == 2 for figure in measured.values())


@pytest.mark.parametrize("part", [window, daemon, adoption])
def test_each_part_that_settles_reports_what_a_minute_of_it_costs(part: Any):
    used = Used(60.0, 0.3, 28, Counts(Counter({"get pods": 3, "patch pods": 2}), 1, 1))
    assert figures.still(used) == {figures.WRITES: 2, figures.CPU: 0.3, figures.CALLS: 28}
    assert figures.still(used).keys() <= part.UNITS.keys()


def test_writes_to_workers_that_are_taken_over_are_distinguished_from_the_rest():
    class Process:
        peak = 90.0

    counts = Counts(Counter({"patch pods": 100, "patch pods/status": 50, "create events": 3}), 1, 1)
    still = Used(60.0, 0.0, 0, Counts(Counter(), 0, 0))
    row = adoption._row(Used(9.0, 2.0, 40, counts), still, Process(), 50)  # pyright: ignore
    assert (row[adoption.WRITES], row[adoption.OTHERS], row[adoption.DELETED]) == (3, 3, 0)
    assert row.keys() == adoption.UNITS.keys()


async def test_the_fleet_s_slurm_shows_which_nodes_are_in_maintenance():
    async with FleetSlurm() as slurm:
        client = Slurmrestd(slurm.url, lambda: "token")
        for number in range(2):
            slurm.started(nodesets.pod(number))
        assert await states(client) == {"compute-0": False, "compute-1": False}
        now = int(time.time())
        slurm.slurmctld.update_reservation(
            {
                "name": "window",
                "users": ["slurm"],
                "node_list": ["compute-1"],
                "flags": ["MAINT"],
                "start_time": {"set": True, "infinite": False, "number": now},
                "end_time": {"set": True, "infinite": False, "number": now + 600},
            }
        )
        assert await states(client) == {"compute-0": False, "compute-1": True}


async def states(client: Slurmrestd) -> dict[str, bool]:
    """Which nodes Slurm shows in maintenance."""
    listed = await client.nodes()
    assert listed is not None
    return {node.name: "MAINTENANCE" in node.state for node in listed.items}


async def test_each_slurmd_of_the_fleet_is_a_new_process_after_a_reconfigure():
    async with FleetSlurm() as slurm:
        client = Slurmrestd(slurm.url, lambda: "token")
        slurm.started(nodesets.pod(0))
        slurm.slurmctld.nodes["compute-0"].started = 1
        await client.nodes()
        began = int(time.time())
        slurm.reconfigured()
        listed = await client.nodes()
        assert listed is not None
        (node,) = listed.items
        assert node.slurmd_start_time is not None
        assert node.slurmd_start_time >= began


def test_the_key_that_is_changed_is_the_one_that_the_cluster_s_daemons_have():
    found = decoded(cluster.modes(PORT))
    assert found["Accounting slurm"].spec.slurm_key_ref.name == keys.KEY
