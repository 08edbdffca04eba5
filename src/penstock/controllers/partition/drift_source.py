"""What an API gives so that drift of its clusters' partitions is found, and reverted or adopted.

`K` is the type of the objects that declare clusters, `C` that of a cluster as its slurm.conf is
rendered from. Other kinds may declare partitions of it as well.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.spec_parts import Status
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.decide.drift import Choice, Found
from penstock.slurm.partition.declaration import Adoption

K = TypeVar("K", bound=KubeObject)
C = TypeVar("C")


class DriftSource(Protocol[K, C]):
    """The clusters of one API. Reading is synchronous and sends nothing."""

    def find(self, key: str) -> K | None:
        """The object that declares the cluster of a key, if it exists."""
        ...

    def is_external(self, obj: K) -> bool:
        """Whether its slurmctld is external: no object declares its partitions."""
        ...

    def object_of(self, cluster: C) -> K:
        """The object that declares a cluster."""
        ...

    def cluster(self, obj: K) -> C:
        """The cluster as it is to be rendered."""
        ...

    def active_conf(self, obj: K) -> str | None:
        """The slurm.conf with which slurmctld starts; None unless it runs with these files."""
        ...

    def owner(self, obj: K, partition: str) -> KubeObject:
        """The object that declares a partition; that of the cluster if nobody does."""
        ...

    def status(self, owner: KubeObject) -> Status:
        """The status of such an object."""
        ...

    def choice(self, owner: KubeObject) -> Choice:
        """What is to become of drift of its partitions."""
        ...

    def adoption(
        self, owner: KubeObject, cluster: C, link: SlurmConnection, due: Found
    ) -> Adoption:
        """The patch of its spec that declares what slurmctld has."""
        ...
