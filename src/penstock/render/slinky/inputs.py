"""What rendering needs to know beside the object itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.penstock.partition import Partition
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NodeSet
from penstock.model.cluster import Cluster as ModelCluster
from penstock.render.parts.default_images import Images
from penstock.slurm.auth.key_rotation import Ring
from penstock.translate.penstock.partition_spec import partition_spec
from penstock.translate.slinky.cluster import cluster


@dataclass(frozen=True, slots=True)
class ClusterInputs:
    """One Slurm cluster as its manifests see it: the Controller and what belongs to it."""

    controller: Controller
    images: Images
    nodesets: tuple[NodeSet, ...] = ()
    accounting: Accounting | None = None
    """The Accounting of `accountingRef`; None also while it does not exist."""
    cluster_domain: str = "cluster.local"
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """`data` of the ConfigMaps that the Controller names, by name; absent ones are left out."""
    slurm_key_hash: str = ""
    """`secret_digest` of the slurm key's Secret as slurmctld's pod was first made with it; empty
    while it is not known. What changes afterwards comes by the key ring, without a restart."""
    clients_key_hash: str = ""
    """As `slurm_key_hash`, of the key that logins begin with: it follows a changed key."""
    node_count: int = 0
    """MaxNodeCount that slurm.conf has already, if it is one of ours."""
    ring: Ring | None = None
    """The keys of auth/slurm that are in use; None before they were first looked at."""
    jwt_key_hash: str = ""
    """`secret_digest` of the JWT key's Secret; empty while it is not known."""
    identities: bool = False
    """Whether tokens carry the user's identity, so that slurmctld need not look the user up."""
    partitions: tuple[Partition, ...] = ()
    rejected_partitions: frozenset[str] = frozenset()
    """Partitions whose lines in `slurm_conf` stay: slurmctld rejected their new declaration."""
    slurm_conf: str = ""
    """The slurm.conf that is in effect, while there are such partitions."""
    in_effect: str = ""
    """A slurm.conf with the partitions in which jobs may be; empty where there can be none."""
    freed: frozenset[str] = frozenset()
    """Those of its partitions of which slurmctld has reported that no job is in them."""

    @property
    def munge_key(self) -> SecretKeySelector | None:
        """Where the key of munge is; None with auth/slurm."""
        return self.controller.spec.munge_key_ref

    @property
    def namespace(self) -> str:
        """Namespace of everything that belongs to the cluster."""
        return self.controller.metadata.namespace

    @property
    def model(self) -> ModelCluster:
        """The cluster as decisions read it."""
        partitions = map(partition_spec, self.partitions)
        return cluster(self.controller, self.accounting, self.nodesets, partitions)
