"""The caches in which the engine finds the objects of one API's workers."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.kinds import ControllerRevision, Node, PersistentVolumeClaim, Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.kube import Cache, Index
from penstock.model.worker_set import WorkerSet

_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True)
class WorkerCaches:
    """Pods and PVCs by the labels of an API, and what else workers depend on.

    `pods_of` and `revisions_of` find by the uid of the controlling owner, `pvcs_of` by
    `namespace/name` of the worker set. `pods_named` finds pods by namespace and name without the
    digits at its end, and `own_pods_named` by the owner's uid besides; see `stems` and `own_stems`.
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
        meta = workers.metadata
        stem = f"{meta.namespace}/{workers.names.pod_prefix}".rstrip(_DIGITS)
        # Nearly always there are none, and thousands of its own.
        if self.pods_named.count(stem) == self.own_pods_named.count(f"{stem} {meta.uid}"):
            return ()
        return tuple(
            pod
            for pod in self.pods_named.get(stem)
            if (owner := pod.metadata.controller) is None or owner.uid != meta.uid
            if workers.names.ordinal_of(pod.metadata.name) is not None
        )


def stems(pod: Pod) -> list[str]:
    """`namespace/prefix` of the worker set that would give a pod this name."""
    return [pod.metadata.key.rstrip(_DIGITS)]


def own_stems(pod: Pod) -> list[str]:
    """The same with the uid of its controlling owner."""
    return [f"{stem} {uid}" for stem in stems(pod) for uid in owner_uids(pod)]


def owner_uids(obj: KubeObject) -> list[str]:
    """The uid of the controlling owner, if there is one."""
    owner = obj.metadata.controller
    return [owner.uid] if owner is not None else []
