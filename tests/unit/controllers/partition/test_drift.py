"""When the partitions of a cluster are compared with their declarations."""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest

from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.slinky.controller import Controller, ControllerSpec
from penstock.controllers.partition.drift import PartitionDrift
from penstock.controllers.runtime.signals import PARTITIONS_POLLED
from penstock.kube.client.clock import SystemClock
from penstock.kube.runtime.declaration import Signals
from penstock.slurm.known import Known
from penstock.slurm.mirror.snapshot import Snapshot
from penstock.slurm.rest.wire import Partition, PartitionNodes
from penstock.slurm.state import Node
from unit.controllers.stage import new_clusters, put

KEY = "slurm/slurm"
DECLARED = "PartitionName=cpu Nodes=none\n"


class Mirror:
    """What slurmctld answered, and whether the cluster is at rest."""

    def __init__(self) -> None:
        self.is_at_rest = True
        self.nodes = {"cpu-0": Node("cpu-0")}

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(Known(MappingProxyType(dict(self.nodes)), 1.0), Known((), 1.0))


class Changes:
    """No change of partitions is on its way."""

    def __init__(self) -> None:
        self.calls = self

    def members(self, *_: object) -> dict[str, frozenset[str]]:
        return {}

    def under_way(self, _: Controller) -> frozenset[str]:
        return frozenset()


class Cluster:
    """One whose slurmctld has the partitions `names`; `compared` counts comparisons."""

    def __init__(self) -> None:
        self.compared = 0
        self.mirror = Mirror()
        self.names = ["cpu"]
        self.signals = Signals()
        caches = new_clusters().caches
        meta = ObjectMeta(name="slurm", namespace="slurm", uid="c")
        self.controller = Controller(metadata=meta, spec=ControllerSpec())
        put(caches.controllers, self.controller)
        self.drift = PartitionDrift[Any, Any](
            cast("Any", SimpleNamespace(clock=SystemClock())),
            cast("Any", self),
            caches.controllers,
            cast("Any", self),
            cast("Any", Changes()),
            self.signals,
            cast("Any", None),
        )

    @property
    def partitions(self) -> SimpleNamespace:
        table = {name: Partition(name, PartitionNodes("", 0), "") for name in self.names}
        return SimpleNamespace(records=Known(MappingProxyType(table), 1.0), poll_soon=lambda: None)

    def peek(self, _: str) -> Cluster:
        return self

    def find(self, _: str) -> Controller:
        return self.controller

    def is_external(self, _: Controller) -> bool:
        return False

    def active_conf(self, _: Controller) -> str:
        self.compared += 1
        return DECLARED

    def cluster(self, _: Controller) -> None: ...

    def poll(self) -> int:
        """How often one answer was compared."""
        before = self.compared
        self.signals.emit(PARTITIONS_POLLED, KEY)
        return self.compared - before


@pytest.fixture
async def cluster() -> Cluster:
    found = Cluster()
    assert found.poll() == 1
    return found


async def test_an_equal_answer_of_a_cluster_at_rest_is_not_compared_again(cluster: Cluster):
    assert cluster.poll() == 0


async def test_an_equal_answer_is_compared_while_a_controller_works_on_the_cluster(
    cluster: Cluster,
):
    cluster.mirror.is_at_rest = False
    assert cluster.poll() == 1


async def test_changed_partitions_and_nodes_are_compared_at_rest(cluster: Cluster):
    cluster.mirror.nodes["cpu-1"] = Node("cpu-1")
    assert cluster.poll() == 1
    assert cluster.poll() == 0
    cluster.names.append("more")
    assert cluster.poll() == 1


async def test_a_difference_is_compared_until_it_is_gone(cluster: Cluster):
    cluster.names.append("more")
    assert [cluster.poll(), cluster.poll()] == [1, 1]
    cluster.names.remove("more")
    assert [cluster.poll(), cluster.poll()] == [1, 0]
