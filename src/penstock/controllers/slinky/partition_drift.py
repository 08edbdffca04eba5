"""Drift of the partitions of Controllers: who declares a partition, and how it is adopted there."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.penstock.partition import Partition
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NodeSet
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.partition.drift_source import DriftSource
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.decide.drift import Choice, Found, choice
from penstock.render.config.content import content_hash
from penstock.render.slinky.config.config_maps import mounted
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.known import Known
from penstock.slurm.mirror.partitions import Records
from penstock.slurm.partition.adoption import Sets, into_extra_conf, into_nodeset
from penstock.slurm.partition.declaration import ALL, Adoption, partition_lines
from penstock.slurm.state import Node
from penstock.translate.penstock.adopted_spec import into_partition


class ControllerDrift(DriftSource[Controller, ClusterInputs]):
    """Of a Controller, its NodeSets and Partitions."""

    def __init__(self, clusters: SlinkyClusters) -> None:
        self._caches = clusters.caches
        self._clusters = clusters

    def find(self, key: str) -> Controller | None:
        """By the cache."""
        return self._caches.controllers.get(key)

    def is_external(self, obj: Controller) -> bool:
        """By its spec."""
        return obj.spec.external

    def object_of(self, cluster: ClusterInputs) -> Controller:
        """Its Controller."""
        return cluster.controller

    def cluster(self, obj: Controller) -> ClusterInputs:
        """With NodeSets and Partitions of the caches."""
        return self._clusters.cluster(obj)

    def active_conf(self, obj: Controller) -> str | None:
        """That of the startup ConfigMap, if the status has its hash."""
        text, data = self._clusters.slurm_conf(obj), self._clusters.real_config(obj)
        if text is None or data is None:
            return None
        found = content_hash(mounted(self._clusters.cluster(obj), data))
        return text if obj.status.effective_config_hash == found else None

    def owner(self, obj: Controller, partition: str) -> KubeObject:
        """The object that declares it: extraConf's line is the last, and counts."""
        key = obj.metadata.key
        if partition in partition_lines(obj.spec.extra_conf):
            return obj
        for one in self._caches.nodesets_of.get(key):
            own = one.spec.partition is not None and one.spec.partition.enabled
            if own and names.partition_name(one) == partition:
                return one
        named = [p for p in self._caches.partitions_of.get(key) if p.slurm_name == partition]
        living = [one for one in named if not one.metadata.deleting]
        by_age = sorted(
            living, key=lambda p: (p.metadata.creation_timestamp or "", p.metadata.name)
        )
        return by_age[0] if by_age else obj

    def status(self, owner: KubeObject) -> Status:
        """That of the object itself."""
        match owner:
            case Partition() | NodeSet() | Controller():
                return owner.status
            case _:
                return Status()

    def choice(self, owner: KubeObject) -> Choice:
        """A field of a Partition, an annotation of other kinds."""
        if isinstance(owner, Partition):
            return owner.spec.drift
        return choice(owner.metadata.annotations)[0]

    def adoption(
        self, owner: KubeObject, cluster: ClusterInputs, link: SlurmConnection, due: Found
    ) -> Adoption:
        """In the fields of a Partition, else in words of slurm.conf."""
        match owner:
            case Partition():
                return into_partition(due)
            case NodeSet():
                partition = owner.spec.partition
                return into_nodeset(partition.config if partition else "", due)
            case Controller():
                records = link.partitions.records
                live: Records = records.value if isinstance(records, Known) else {}
                sets = _sets(cluster, link)
                return into_extra_conf(owner.spec.extra_conf, due, live, sets)
            case _:
                return Adoption({})


def _sets(cluster: ClusterInputs, link: SlurmConnection) -> Sets:
    """The node sets of NodeSets, and ALL, with the nodes that they have now."""
    nodes = link.mirror.snapshot.nodes
    there: Mapping[str, Node] = nodes.value if isinstance(nodes, Known) else {}
    found: dict[str, frozenset[str]] = {ALL: frozenset(there)}
    for one in cluster.nodesets:
        name = names.partition_name(one)
        found[name] = frozenset(n for n, node in there.items() if name in node.features)
    return found
