"""The bench `checks`: what it declares, and the log of its simulated slurmctld."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from bench import ranges
from bench.fleet.checks import run as checks
from bench.fleet.checks.cluster import FAILING, REST_HOST, slurmcluster
from bench.fleet.checks.cluster import checks as objects
from bench.fleet.checks.slurmctld import RELEASE, ReconfigureLog
from bench.fleet.cluster import CLUSTER, SPACE
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.nebius.active_check import ActiveCheck
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster, SlurmClusterStatus
from penstock.decide.config import reconfigure_log
from penstock.translate.nebius.worker_set import node_set_workers

PORT = 1234


def test_its_workers_are_of_its_slurmcluster_whose_slurmrestd_is_the_benchs():
    cluster, nodeset = slurmcluster(PORT)
    made = msgspec.convert(cluster, SlurmCluster)
    rest = made.spec.slurm_nodes.rest.rest
    assert rest is not None
    assert rest.port == PORT
    workers = node_set_workers(msgspec.convert(nodeset, NodeSet))
    assert (workers.cluster, workers.replicas) == (CLUSTER, 0)
    assert f"{CLUSTER}-rest-svc.{SPACE}" == REST_HOST


def test_the_failing_check_is_one_beside_those_of_the_chart():
    found: list[Any] = [one for one in objects() if one["kind"] == "ActiveCheck"]
    names = [msgspec.convert(one, ActiveCheck).metadata.name for one in found]
    assert names.count(FAILING) == 1
    assert len(names) > 5


def test_each_configuration_is_tried_and_in_force_once(tmp_path: Path):
    path, reconfigured = tmp_path / "log", list[str]()
    log = ReconfigureLog(path, lambda: reconfigured.append("all"))
    for wanted in ("", "a", "a", "b"):
        status = SlurmClusterStatus(config_hash=wanted)
        log.follow(None, SlurmCluster(metadata=ObjectMeta(name=CLUSTER), status=status))
    assert len(reconfigured) == 2
    text = "\n".join(line.split(" ", 3)[3] for line in path.read_text().splitlines())
    found = reconfigure_log.read(text)
    assert (found.release, found.active) == (RELEASE, "b")
    assert "b" in found.tried


def test_every_limit_is_of_a_figure_that_is_measured():
    assert ranges.limits(ranges.read(), checks.BENCH.name).keys() <= checks.UNITS.keys()
