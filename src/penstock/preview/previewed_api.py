"""What a plan has to know of one API: its clusters, their Slurm, and how their pods restart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.resource import Resource
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.operator import Operator
from penstock.controllers.registry import SERVED_APIS
from penstock.kube import Manager
from penstock.preview.effect import Files, Restart, WorkerPods
from penstock.preview.state import ClusterCopy, Objects, SimulatedRun, SlurmService

C = TypeVar("C")
Find: TypeAlias = Callable[[str, str, str], Json | None]
"""Looks up an object by resource, namespace and name."""


class PreviewedApi(ABC, Generic[C]):
    """One API; `C` is what its reconcilers know of clusters."""

    group: str
    """The API group of its kinds."""
    cluster_kind: Resource[Any]
    """The kind that declares a cluster."""
    prefixes: tuple[str, ...]
    """Beginnings of the resources whose conditions report a failed reconcile."""

    def store(self, manager: Manager) -> CacheStore:
        """Declare to the manager what the operator watches for this API."""
        (served,) = (one for one in SERVED_APIS if one.group == self.group)
        found = CacheStore(manager, served.pods, served.pvcs)
        self.watch(found)
        return found

    @abstractmethod
    def watch(self, store: CacheStore) -> None:
        """Have the store build the caches of this API."""

    @abstractmethod
    def services(self, objects: Objects) -> Mapping[str, SlurmService | str]:
        """By key of its cluster where each Slurm is asked, or why it cannot be."""

    @abstractmethod
    def files(self, find: Find, key: str) -> Mapping[str, str]:
        """The configuration that the slurmctld of a cluster has, as far as it is the operator's."""

    @abstractmethod
    def etc(self, find: Find, pod: Json) -> Mapping[str, str] | None:
        """What the pod of a slurmctld has at /etc/slurm; None where its volumes define it."""

    @abstractmethod
    def cluster_of(self, declares_slurmrestd: Any) -> str:
        """Key of the cluster of the object that declares its slurmrestd."""

    @abstractmethod
    def clusters(self, operator: Operator) -> C:
        """What the reconcilers of this API know."""

    @abstractmethod
    def changed_files(self, live: ClusterCopy, run: SimulatedRun[C]) -> Iterator[Files]:
        """Clusters whose configuration changes, by name."""

    @abstractmethod
    def workers(self, run: SimulatedRun[C]) -> Iterator[WorkerPods]:
        """All workers, by the name of what declares them."""

    @abstractmethod
    def daemon(self, labels: Mapping[str, str]) -> str:
        """The daemon of a pod with these labels: `slurmd` of a worker; empty for other pods."""

    @abstractmethod
    def has_state(self, run: SimulatedRun[C], namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels has slurmctld's state, with all jobs, in itself."""

    @abstractmethod
    def restarts(
        self, live: ClusterCopy, run: SimulatedRun[C], changed: Sequence[Files]
    ) -> Iterator[Restart]:
        """Restarts that follow from other keys of Slurm, or other files, and no new template."""
