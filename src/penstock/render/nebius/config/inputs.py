"""What the configuration files of a SlurmCluster are rendered from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.nebius.version_defaults import has_older_shape
from penstock.model.cluster import AccountingLink
from penstock.slurm.versions import Version


def _no_files() -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigInputs:
    """A SlurmCluster with its NodeSets, and what is known of its slurmctld.

    `prefix` is that of the workloads' names (`api.nebius.names.workload_prefix`). `version` is the
    release of the slurmctld that reads the files, None while it is unknown. `mpi_plugins` are
    those of its image, empty while they are unknown. `accounting` is the slurmdbd that slurmctld
    writes to; None without one. `topology_conf` is the text of topology.conf, empty without one.

    `published` are the files in force, empty before the first ones: numbers that must not shrink
    are read from them. Partitions in `rejected_partitions` stay as they are in `slurm_conf`, or as
    they are published when that is empty. `in_effect` is a slurm.conf with all partitions in which
    jobs may be. Those that it has and nobody declares stay, drained, unless they are in `freed`.
    Both texts have their includes resolved.

    `accepted` are the last known good files, while slurmctld rejects what the SlurmCluster itself
    declares. Its lines are those of these files then, and only partitions and what follows NodeSets
    are rendered from the objects. Empty while nothing is rejected.

    `power_saved` are numbers of nodes by ephemeral NodeSet: one that shrinks keeps the nodes that
    have a pod, as jobs may be there.
    """

    cluster: SlurmCluster
    node_sets: tuple[NodeSet, ...] = ()
    prefix: str = ""
    version: Version | None = None
    mpi_plugins: frozenset[str] = frozenset()
    accounting: AccountingLink | None = None
    has_database: bool = True
    """Whether slurmdbd could add TRES to its database: slurmctld ends at a TRES that it lacks."""
    topology_conf: str = ""
    published: Mapping[str, str] = field(default_factory=_no_files)
    in_effect: str = ""
    freed: frozenset[str] = frozenset()
    rejected_partitions: frozenset[str] = frozenset()
    slurm_conf: str = ""
    accepted: Mapping[str, str] = field(default_factory=_no_files)
    power_saved: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def name(self) -> str:
        """The name of the SlurmCluster."""
        return self.cluster.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace of the SlurmCluster."""
        return self.cluster.metadata.namespace

    @property
    def is_older(self) -> bool:
        """Whether the workers are part of the SlurmCluster, as up to version 2.0."""
        return has_older_shape(self.cluster.spec)

    @property
    def sorted_node_sets(self) -> tuple[NodeSet, ...]:
        """The NodeSets by name."""
        return tuple(sorted(self.node_sets, key=lambda one: one.metadata.name))
