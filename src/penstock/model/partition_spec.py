"""A Slurm partition over any nodes of a cluster, as an object declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.api.kubernetes.kinds import Requirement
from penstock.model.object_ref import ObjectRef


@dataclass(frozen=True, slots=True)
class WorkerSelector:
    """Workers of which labels and features meet all requirements; an empty one selects all.

    `pod_labels` are requirements on the pod, `node_labels` on its Kubernetes node.
    """

    features: frozenset[str] = frozenset()
    pod_labels: tuple[Requirement, ...] = ()
    node_labels: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The desired state of one partition.

    `name` is Slurm's PartitionName. `created` is RFC 3339: of two with the same name the older one
    counts. An invalid one is not rendered. `nodes` are host expressions, names of Slurm node sets
    or ALL; `+` or `-` before an entry adds or removes. `worker_sets` are names of objects.
    `settings` are all other keys of the PartitionName line, in the order in which they are written.
    """

    declared_by: ObjectRef
    name: str
    created: str
    is_deleting: bool
    is_valid: bool
    nodes: tuple[str, ...]
    worker_sets: tuple[str, ...]
    selector: WorkerSelector | None
    settings: Mapping[str, str]
