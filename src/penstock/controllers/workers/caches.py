"""The caches in which the engine finds the objects of one API's workers."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.kinds import ControllerRevision, Node, PersistentVolumeClaim, Pod
from penstock.controllers.caches.owners import controlling_owner, owned_by_kind
from penstock.kube import Cache, Index
from penstock.model.worker_set import WorkerSet

_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True)
class WorkerCaches:
    """Pods and PVCs by the labels of an API, and what else workers depend on.

    `pods_of` and `revisions_of` find by `owner_of` a worker set, `pvcs_of` by its `namespace/name`.
    `pods_named` finds pods by namespace and name without the digits at its end, and
    `own_pods_named` by the owner besides; see `stems` and `own_stems`.
    """

    pods: Cache[Pod]
    pods_of: Index[Pod]
    pods_named: Index[Pod]
    own_pods_named: Index[Pod]
    pvcs: Cache[PersistentVolumeClaim]
    pvcs_of: Index[PersistentVolumeClaim]
    nodes: Cache[Node]
    revisions_of: Index[ControllerRevision]

    def conflicting_pods(self, workers: WorkerSet) -> tuple[Pod, ...]:
        """Pods with names of the form of a worker set's that it does not control."""
        own = owner_of(workers)
        stem = f"{workers.metadata.namespace}/{workers.names.pod_prefix}".rstrip(_DIGITS)
        # Nearly always there are none, and thousands of its own.
        if self.pods_named.count(stem) == self.own_pods_named.count(f"{stem} {own}"):
            return ()
        return tuple(
            pod
            for pod in self.pods_named.get(stem)
            if own not in controlling_owner(pod)
            if workers.names.ordinal_of(pod.metadata.name) is not None
        )


def stems(pod: Pod) -> list[str]:
    """`namespace/prefix` of the worker set that would give a pod this name."""
    return [pod.metadata.key.rstrip(_DIGITS)]


def own_stems(pod: Pod) -> list[str]:
    """The same with its controlling owner."""
    return [f"{stem} {owner}" for stem in stems(pod) for owner in controlling_owner(pod)]


def owner_of(workers: WorkerSet) -> str:
    """The value under which indexes have the objects that a worker set controls."""
    return owned_by_kind(workers.api_version, workers.kind, workers.metadata.uid)
