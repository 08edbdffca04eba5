"""Partitions of a SlurmCluster, changed, rejected and removed in a running slurmctld."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import pytest

from penstock.api.kubernetes.kinds import ConfigMap, Pod, StatefulSet, WorkloadStatus
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.nebius import names
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.controllers.nebius.partition_source import ClusterPartitions
from penstock.controllers.observed.nebius_caches import NebiusCaches
from penstock.controllers.partition.changes import REPLACED_S, REREAD_S, PartitionChanges
from penstock.controllers.partition.state import State
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.kube import Client, Manager, Recorder
from penstock.kube.runtime.declaration import Signals
from penstock.kube.runtime.state import StateByUid
from penstock.render.nebius.config.files import files
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.inputs import Images
from penstock.simulation.manual_clock import ManualClock
from penstock.simulation.slurm.slurmctld import NODES_BUSY, SlurmctldError
from penstock.slurm.conf.includes import resolved
from penstock.slurm.partition.declaration import partition_lines
from support import nebius, nodesets
from unit.controllers.stage import Stage, put, stage
from unit.kube.fake_api import FakeApi

MAIN = {"name": "main", "isAll": True, "config": "Default=YES"}
CPU = {"name": "cpu", "nodeSetRefs": ["worker-cpu"], "config": "MaxTime=60"}


def declared(*partitions: dict[str, Any], custom: str = "") -> SlurmCluster:
    changes = {
        "metadata.uid": "u1",
        "spec.partitionConfiguration": {"configType": "structured", "partitions": partitions},
        "spec.customSlurmConfig": custom,
    }
    found = cast("SlurmCluster", nebius.made("slurmcluster-5.0-0", changes))
    # Its slurmctld has worked, so jobs may be in its partitions.
    condition = {"type": "ConfigApplied", "status": "True", "reason": "Effective", "message": ""}
    status = msgspec.convert(
        {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        type(found.status),
    )
    return msgspec.structs.replace(found, status=status)


@dataclass
class One:
    """The connections of an operator with one cluster."""

    link: SlurmConnection

    def get(self, key: str) -> SlurmConnection | None:
        del key
        return self.link


class Led:
    """One SlurmCluster with its caches, and changes of its partitions."""

    def __init__(self, lab: Stage, before: SlurmCluster, workers: int = 2) -> None:
        client = Client(FakeApi())
        self.caches = NebiusCaches(CacheStore(Manager(client)))
        self.clusters = NebiusClusters(self.caches, Images("operator", "rest"), "cluster.local")
        self.source = ClusterPartitions(self.clusters)
        self.lab = lab
        self.version = 0
        self.clock = ManualClock()
        connections: Any = One(lab.link)
        self.changes = PartitionChanges(
            self.source,
            StateByUid(self.caches.clusters, State),
            connections,
            self.clock,
            Signals(),
        )
        self.events = Events(Recorder(client, "test", "test"), SLURM_CLUSTERS)
        put(self.caches.clusters, before)
        self.prefix = self.clusters.prefix(before)
        made = nebius.made("nodesets-5.0-0", {"spec.replicas": workers})
        put(self.caches.node_sets, cast("NodeSet", made))
        self.publish(files(self.clusters.config(before)))

    def publish(self, data: dict[str, str]) -> None:
        """These files are in force, and slurmctld runs with them."""
        name = nebius.made("slurmcluster-5.0-0").metadata.name
        # A cache ignores an older version than it has.
        self.version += 1
        for each in (names.slurm_configs(name), names.last_known_good_configs(name)):
            version = str(self.version)
            meta = ObjectMeta(name=each, namespace="soperator", uid=each, resource_version=version)
            put(self.caches.config_maps, ConfigMap(metadata=meta, data=data))
        self.lab.slurm.read(resolved(data))

    def slurmctld(self, pod: str, template: str) -> None:
        """slurmctld has a pod of one revision, and its StatefulSet a template of another."""
        self.version += 1
        meta = ObjectMeta(
            name=f"{self.prefix}controller",
            namespace="soperator",
            resource_version=f"{self.version}",
        )
        status = WorkloadStatus(update_revision=template)
        put(self.caches.stateful_sets, StatefulSet(metadata=meta, status=status))
        labels = {"controller-revision-hash": pod}
        meta = msgspec.structs.replace(meta, name=f"{meta.name}-0", labels=labels)
        put(self.caches.pods, Pod(metadata=meta))

    async def apply(self, cluster: SlurmCluster) -> tuple[ConfigInputs, bool]:
        """What files are rendered from, and whether slurmctld need not read them."""
        put(self.caches.clusters, cluster)
        await self.lab.link.mirror.poll()
        found = await self.changes.apply(cluster, self.events)
        return found.cluster, found.live


def calls(lab: Stage) -> Sequence[str]:
    return [one for one in lab.posts() if "partition" in one]


async def test_a_changed_and_a_new_partition_go_by_one_call_each() -> None:
    async with stage(nodesets.nodeset(1), "worker-cpu-0") as lab:
        led = Led(lab, declared(MAIN, CPU))
        new = {"name": "new", "nodeSetRefs": ["worker-cpu"], "config": ""}
        inputs, live = await led.apply(declared(MAIN, {**CPU, "config": "MaxTime=5"}, new))
        assert live
        assert len(calls(lab)) == 2
        assert lab.slurm.partitions.keys() == {"main", "cpu", "new"}
        assert partition_lines(resolved(files(inputs)))["cpu"].keys["maxtime"] == "5"


async def test_a_rejected_partition_stays_as_it_is_and_others_go_on() -> None:
    async with stage(nodesets.nodeset(1), "worker-cpu-0") as lab:
        led = Led(lab, declared(MAIN, CPU))
        limited = {**MAIN, "config": "Default=YES MaxNodes=1"}
        wrong = declared(limited, {**CPU, "config": "QOS=none"})
        inputs, live = await led.apply(wrong)
        assert live
        (finding,) = led.changes.findings(wrong)
        assert "QOS=none" in finding.message
        assert finding.type == "ConfigApplied"
        found = partition_lines(resolved(files(inputs)))
        assert found["cpu"].keys["maxtime"] == "60"
        assert found["main"].keys["maxnodes"] == "1"


async def test_a_removed_partition_is_drained_and_freed_once_its_job_ended() -> None:
    async with stage(nodesets.nodeset(1), "worker-cpu-0") as lab:
        led = Led(lab, declared(MAIN, CPU))
        job = lab.slurm.run("worker-cpu-0", partition="cpu")
        inputs, live = await led.apply(declared(MAIN))
        assert live
        assert partition_lines(resolved(files(inputs)))["cpu"].keys["state"] == "DRAIN"
        led.publish(files(inputs))
        inputs, _ = await led.apply(declared(MAIN))
        assert "cpu" in lab.slurm.partitions
        lab.slurm.finish(job)
        inputs, live = await led.apply(declared(MAIN))
        assert live
        assert lab.slurm.partitions.keys() == {"main"}
        assert partition_lines(resolved(files(inputs))).keys() == {"main"}


async def test_a_partition_that_goes_before_a_file_has_it_is_drained_for_its_job() -> None:
    async with stage(nodesets.nodeset(1), "worker-cpu-0") as lab:
        led = Led(lab, declared(MAIN))
        await led.apply(declared(MAIN, CPU))
        job = lab.slurm.run("worker-cpu-0", partition="cpu")
        inputs, _ = await led.apply(declared(MAIN))
        assert lab.slurm.partitions["cpu"]["partition"]["state"] == ["DRAIN"]
        assert partition_lines(resolved(files(inputs)))["cpu"].keys["state"] == "DRAIN"
        assert not [one for one in calls(lab) if one.startswith("DELETE")]
        led.publish(files(inputs))
        lab.slurm.finish(job)
        await led.apply(declared(MAIN))
        assert lab.slurm.partitions.keys() == {"main"}


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_partition_waits_while_a_statefulset_is_to_replace_the_pod_of_slurmctld(
    replaced: bool,
) -> None:
    """slurmctld would lose it, and end its jobs: it starts with a file that lacks it."""
    async with stage(nodesets.nodeset(1), "worker-cpu-0") as lab:
        led = Led(lab, declared(MAIN))
        led.slurmctld(pod="old", template="new")
        inputs, live = await led.apply(declared(MAIN, CPU))
        assert (calls(lab), live) == ([], True)
        assert partition_lines(resolved(files(inputs))).keys() == {"main"}
        if replaced:
            led.slurmctld(pod="new", template="new")
        else:
            # Nobody replaces it.
            await led.clock.advance(REPLACED_S)
        await led.apply(declared(MAIN, CPU))
        assert lab.slurm.partitions.keys() == {"main", "cpu"}


async def test_workers_named_one_by_one_join_beside_whole_node_sets() -> None:
    async with stage(nodesets.nodeset(1), "worker-cpu-0", "other-0") as lab:
        led = Led(lab, declared(MAIN))
        custom = "NodeSet=mine Feature=big\nPartitionName=one Nodes=mine,worker-cpu-0\n"
        inputs, _ = await led.apply(declared(MAIN, custom=custom))
        (one,) = led.source.model(inputs).partitions
        assert one.nodes == ("mine", "worker-cpu-0")
        assert "penstock/one" in lab.slurm.nodes["worker-cpu-0"].features
        assert "penstock/one" not in lab.slurm.nodes["other-0"].features


def one_of(*workers: str) -> SlurmCluster:
    """A cluster with a partition that names these workers."""
    own = f"NodeSet=mine Feature=big\nPartitionName=one Nodes=mine,{','.join(workers)}\n"
    return declared(MAIN, custom=own)


async def test_workers_join_a_partition_that_could_not_be_changed_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S146: their features are there by then, so nothing else would change it."""
    first, second = "worker-cpu-0", "worker-cpu-1"

    def nodes() -> str:
        return lab.slurm.partitions["one"]["nodes"]["configured"]

    async with stage(nodesets.nodeset(3), first, second) as lab:
        led = Led(lab, declared(MAIN), 3)
        inputs, _ = await led.apply(one_of(first))
        led.publish(files(inputs))
        assert nodes() == first

        def busy(_: dict[str, Any]) -> None:
            raise SlurmctldError(*NODES_BUSY)

        with monkeypatch.context() as patch:
            patch.setattr(lab.slurm, "update_partition", busy)
            await led.apply(one_of(first, second))
        assert nodes() == first
        await led.apply(one_of(first, second))
        assert (nodes(), lab.slurm.reconfigured) == ("worker-cpu-[0-1]", 0)


async def test_workers_join_and_leave_a_partition_of_an_older_slurmctld_by_a_reconfigure() -> None:
    """S146: its slurmrestd changes no partition, and with features of nodes no file changes."""
    first, second = "worker-cpu-0", "worker-cpu-1"

    def nodes() -> str:
        return lab.slurm.partitions["one"]["nodes"]["configured"]

    async with stage(nodesets.nodeset(3), first, second) as lab:
        lab.rest.parsers = ("v0.0.42",)
        led = Led(lab, declared(MAIN), 3)
        inputs, live = await led.apply(one_of(first))
        assert (live, lab.slurm.reconfigured) == (False, 0)
        led.publish(files(inputs))
        lab.slurm.rereads = lambda: lab.slurm.read(resolved(files(inputs)))
        assert nodes() == first
        await led.apply(one_of(first, second))
        assert (nodes(), lab.slurm.reconfigured) == ("worker-cpu-[0-1]", 1)
        # The next one waits a little, and is not forgotten.
        await led.apply(one_of(second))
        assert (nodes(), lab.slurm.reconfigured) == ("worker-cpu-[0-1]", 1)
        await led.clock.advance(REREAD_S)
        await led.apply(one_of(second))
        await led.apply(one_of(second))
        assert (nodes(), lab.slurm.reconfigured) == (second, 2)
