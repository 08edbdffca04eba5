"""What reconcilers declare, and how start-up connects it."""

from __future__ import annotations

from typing import Any

from penstock.api.kubernetes.meta import KubeObject, ObjectMeta
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.nodeset import NODESETS
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.observed.members import NODESETS_BY_CLUSTER, members_of
from penstock.controllers.observed.watching import indexed, own_key, spec_changed
from penstock.controllers.registry.slinky import RECONCILERS as SLINKY_RECONCILERS
from penstock.controllers.runtime import signals
from penstock.kube import Client, Manager, Result
from penstock.kube import Controller as Queue
from penstock.kube.runtime.declaration import Signal, Signals, Watch, subscribe
from support import nodesets
from unit.controllers.stage import drop, put
from unit.kube.fake_api import FakeApi

WATCHED = {
    "controller": (
        "accountings configmaps controllers nodes nodesets partitions pods secrets "
        "servicemonitors services statefulsets tokens"
    ),
    "partition": "controllers nodesets partitions",
    "restapi": "accountings configmaps controllers deployments pods restapis secrets services",
    "loginset": "configmaps controllers deployments loginsets pods secrets services",
    "nodeset": (
        "configmaps controllers nodes nodesets persistentvolumeclaims poddisruptionbudgets pods "
        "secrets services"
    ),
    "slurm": "controllers nodesets restapis secrets services",
    "accounting": "accountings configmaps controllers pods secrets services statefulsets",
    "token": "controllers secrets tokens",
}
FOLLOWED = {
    "controller": {
        signals.SLURM,
        signals.REGISTRATION,
        signals.PARTITIONS_PENDING,
        signals.PARTITION_DRIFT,
    },
    "partition": {signals.PARTITIONS_APPLIED, signals.PARTITIONS_POLLED},
    "nodeset": {
        signals.SLURM,
        signals.PARTITIONS_APPLIED,
        signals.PARTITIONS_POLLED,
        signals.PARTITION_DRIFT,
    },
}


def declared(reconciler: Any) -> Any:
    """The class as what it declares."""
    return reconciler


def test_each_reconciler_watches_what_it_depends_on() -> None:
    """A watch that is lost shows only as slowness: the next requeue would find the change."""
    found = {
        declared(one).name: " ".join(sorted({w.resource.plural for w in declared(one).watches}))
        for one in SLINKY_RECONCILERS
    }
    assert found == WATCHED


def test_each_signal_has_a_reconciler_that_follows_it() -> None:
    found = {
        one.name: {signal.name for signal in one.signals}
        for one in map(declared, SLINKY_RECONCILERS)
        if one.signals
    }
    assert found == FOLLOWED
    names = {value for name, value in vars(signals).items() if name.isupper()}
    assert set[str]().union(*found.values()) == names


class Example:
    """NodeSets of a changed Controller."""

    name = "example"
    watches = (
        Watch(CONTROLLERS, indexed(NODESETS_BY_CLUSTER, own_key), spec_changed),
        Watch(NODESETS, own_key),
    )
    signals = (Signal("slurm", members_of(NODESETS_BY_CLUSTER)),)

    async def run(self, key: str, /) -> Result:
        raise AssertionError(key)


class Lab:
    """A queue that follows the example."""

    def __init__(self) -> None:
        client = Client(FakeApi())
        self.caches = CacheStore(Manager(client))
        self.signals = Signals()
        example = Example()
        queue = Queue(example.name, example.run, clock=client.clock, metrics=client.metrics)
        subscribe(queue, example, self.caches, self.caches.of, self.signals)
        self._queue: Any = queue.queue

    def queued(self) -> list[str]:
        """The keys that were added since the last call."""
        found = list(self._queue._ready)
        self._queue._ready.clear()
        self._queue._dirty.clear()
        return found


def controller(generation: int, version: int, uid: str = "c") -> Controller:
    meta = ObjectMeta(
        name="slurm",
        namespace="slurm",
        uid=uid,
        generation=generation,
        resource_version=str(version),
    )
    return Controller(metadata=meta)


async def test_a_change_leads_to_the_keys_of_the_old_state_and_of_the_new_one() -> None:
    lab = Lab()
    put(lab.caches.of(NODESETS), nodesets.nodeset())
    assert lab.queued() == ["slurm/compute"]
    put(lab.caches.of(CONTROLLERS), controller(1, 10))
    assert lab.queued() == ["slurm/compute"]
    put(lab.caches.of(CONTROLLERS), controller(1, 11))
    assert lab.queued() == [], "only the status changed"
    put(lab.caches.of(CONTROLLERS), controller(1, 12, uid="d"))
    assert lab.queued() == ["slurm/compute"]
    drop(lab.caches.of(CONTROLLERS), controller(1, 13, uid="d"))
    assert lab.queued() == ["slurm/compute"]


async def test_a_signal_leads_to_the_members_of_its_cluster_at_once_or_later() -> None:
    lab = Lab()
    put(lab.caches.of(NODESETS), nodesets.nodeset())
    lab.queued()
    lab.signals.emit("slurm", "slurm/other")
    lab.signals.emit("another", "slurm/slurm")
    assert lab.queued() == []
    lab.signals.emit("slurm", "slurm/slurm")
    assert lab.queued() == ["slurm/compute"]
    lab.signals.emit("slurm", "slurm/slurm", after_s=60.0)
    assert lab.queued() == []


def test_an_own_key_needs_no_lookup() -> None:
    caches = CacheStore(Manager(Client(FakeApi())))
    assert own_key(KubeObject(metadata=ObjectMeta(name="a", namespace="b")), caches) == ["b/a"]
