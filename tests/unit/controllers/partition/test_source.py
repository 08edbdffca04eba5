"""Partitions of a cluster of a second API, changed and removed in a running slurmctld."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from penstock.api.kubernetes.kinds import Pod, StatefulSet
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.observed.cluster_state import PartitionOverrides
from penstock.controllers.partition.changes import PartitionChanges
from penstock.controllers.partition.source import PartitionSource
from penstock.controllers.partition.state import State
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import SlurmConnection, SlurmConnections
from penstock.kube import Client, Manager, Recorder
from penstock.kube.runtime.declaration import Signals
from penstock.kube.runtime.state import StateByUid
from penstock.model.cluster import Cluster
from penstock.model.object_ref import ObjectRef
from penstock.render.config.partition import Worker
from penstock.slurm.partition.retention import removed_partitions, retained_lines
from support import nodesets
from support.tiny_api import CREWS, Crew, CrewSpec
from unit.controllers.stage import put, stage
from unit.kube.fake_api import FakeApi

HEAD = "ClusterName=tiny\n"
SHORT, LONG = f"{HEAD}PartitionName=a Nodes=ALL\n", f"{HEAD}PartitionName=a Nodes=ALL MaxTime=60\n"
CREW = Crew(
    metadata=ObjectMeta(name="tiny", namespace="slurm", uid="crew-1"),
    spec=CrewSpec(cluster="tiny"),
)
KEY = SecretKeySelector(name="key", key="key")
MODEL = Cluster(
    declared_by=ObjectRef(CREWS.group, CREWS.kind, "slurm", "tiny", "crew-1"),
    conditions=(),
    external=False,
    host="tiny",
    port=6817,
    slurm_key=KEY,
    jwt_key=KEY,
    accounting=None,
    extra_conf="",
)


@dataclass(frozen=True)
class Lines:
    """A cluster of which only slurm.conf is known: the declared and the active one."""

    declared: str
    active: str
    freed: frozenset[str] = frozenset()


@dataclass
class CrewPartitions(PartitionSource[Crew, Lines]):
    """One cluster that is given as text."""

    lines: Lines
    state: PartitionOverrides = field(default_factory=PartitionOverrides)

    def is_external(self, obj: Crew) -> bool:
        return False

    def overrides(self, obj: Crew) -> PartitionOverrides:
        return self.state

    def startup_conf(self, obj: Crew) -> str | None:
        return self.lines.active

    def runs_with_startup(self, obj: Crew) -> bool:
        return True

    def cluster(self, obj: Crew) -> Lines:
        return replace(self.lines, freed=self.state.freed)

    def accepted(self, obj: Crew) -> Lines | None:
        return None

    def slurmctld_pods(self, obj: Crew) -> tuple[Pod, ...]:
        return ()

    def workload(self, obj: Crew) -> StatefulSet | None:
        return None

    def has_slurmrestd(self, obj: Crew) -> bool:
        return True

    def has_own_object(self, obj: Crew, partition: str) -> bool:
        return False

    def report_removed_keys(
        self, obj: Crew, events: Events, texts: tuple[str, str], only: Container[str]
    ) -> None:
        return

    def model(self, cluster: Lines) -> Cluster:
        return MODEL

    def slurm_conf(self, cluster: Lines) -> str:
        held = retained_lines(cluster.active, cluster.declared, cluster.freed)
        return cluster.declared + "".join(f"{one}\n" for one in held)

    def retained(self, cluster: Lines) -> frozenset[str]:
        return removed_partitions(cluster.active, cluster.declared) - cluster.freed

    def kept(self, cluster: Lines) -> frozenset[str]:
        return frozenset()

    def keeping(self, cluster: Lines, partitions: frozenset[str], text: str = "") -> Lines:
        return cluster

    def freeing(self, cluster: Lines, partitions: frozenset[str]) -> Lines:
        return replace(cluster, freed=partitions)

    def workers(self, cluster: Lines) -> Mapping[str, Worker]:
        return {}


@dataclass
class OneConnection:
    """The connections of an operator with one cluster."""

    link: SlurmConnection

    def get(self, key: str) -> SlurmConnection | None:
        return self.link if key == CREW.metadata.key else None


def changes_of(
    source: CrewPartitions, link: SlurmConnection
) -> tuple[PartitionChanges[Crew, Lines], Events]:
    client = Client(FakeApi())
    crews = CacheStore(Manager(client)).of(CREWS)
    put(crews, CREW)
    connections: Any = OneConnection(link)
    changes = PartitionChanges(
        source,
        StateByUid(crews, State),
        cast("SlurmConnections", connections),
        client.clock,
        Signals(),
    )
    return changes, Events(Recorder(client, "test", "test"), CREWS)


async def test_a_changed_partition_of_any_kind_of_cluster_goes_by_one_call() -> None:
    async with stage(nodesets.nodeset(1), "node-0") as lab:
        lab.slurm.read(SHORT)
        changes, events = changes_of(CrewPartitions(Lines(LONG, SHORT)), lab.link)
        found = await changes.apply(CREW, events)
        assert found.live
        assert [one for one in lab.posts() if "partition" in one]
        assert changes.sent_names(CREW) == {"a"}
        assert changes.under_way(CREW) == {"a"}


async def test_a_removed_partition_of_any_kind_of_cluster_goes_once_it_is_empty() -> None:
    both = f"{SHORT}PartitionName=b Nodes=ALL State=DRAIN\n"
    async with stage(nodesets.nodeset(1), "node-0") as lab:
        lab.slurm.read(both)
        job = lab.slurm.run("node-0", partition="b")
        await lab.link.mirror.poll()
        source = CrewPartitions(Lines(SHORT, both))
        changes, events = changes_of(source, lab.link)
        await changes.apply(CREW, events)
        assert set(lab.slurm.partitions) == {"a", "b"}
        assert (finding := changes.draining_finding(CREW)) is not None
        assert "b" in finding.message
        lab.slurm.finish(job)
        await lab.link.mirror.poll()
        found = await changes.apply(CREW, events)
        assert set(lab.slurm.partitions) == {"a"}
        assert source.slurm_conf(found.cluster) == SHORT
        assert changes.draining_finding(CREW) is None
