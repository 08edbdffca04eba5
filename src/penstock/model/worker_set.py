"""A set of workers: pods with slurmd that one object declares, in the words of no API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.api.cluster.labels import selector_text
from penstock.api.kubernetes.kinds import NodeTerm, Taint
from penstock.api.kubernetes.meta import KubeStruct, ObjectMeta, OwnerReference
from penstock.model.image_sources import ImageSources
from penstock.model.worker_marks import WorkerMarks
from penstock.model.worker_names import WorkerNames
from penstock.model.worker_status import WorkerSetStatus
from penstock.slurm.reservation_schedule import Schedule


class Toleration(KubeStruct, frozen=True):
    """A taint that a pod tolerates; an empty field matches anything."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether a pod with it tolerates that taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.operator == "Exists":
            return not self.key or self.key == taint.key
        equal = self.operator in (None, "", "Equal")
        return equal and self.key == taint.key and (self.value or "") == (taint.value or "")


@dataclass(frozen=True, slots=True)
class Placement:
    """What a pod's template requires of its Kubernetes node; `terms` is None without affinity."""

    labels: Mapping[str, str]
    terms: tuple[NodeTerm, ...] | None
    tolerated: tuple[Toleration, ...]


@dataclass(frozen=True, slots=True)
class UpdatePolicy:
    """How pods reach a new revision.

    `max_unavailable` is a number of pods or a percentage of those wanted. `schedule` is the
    maintenance window of ScheduledUpdate; None while it cannot be read.
    """

    type: Literal["RollingUpdate", "OnDelete", "ScheduledUpdate"] = "RollingUpdate"
    max_unavailable: int | str = "25%"
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True)
class PvcPolicy:
    """PVC templates by name, and whether their PVCs outlive the object or the scaled-in pod."""

    templates: tuple[str, ...] = ()
    when_deleted: Literal["Retain", "Delete"] = "Retain"
    when_scaled: Literal["Retain", "Delete"] = "Retain"


@dataclass(frozen=True, slots=True)
class Wording:
    """How messages name what a user declared: kinds and field paths of the API."""

    cluster_kind: str
    cluster_field: str
    template_field: str


@dataclass(frozen=True, slots=True)
class WorkerSet:
    """The workers that one object declares.

    `metadata` is that object's, `cluster` the name of the cluster's object in the same namespace.
    `per_node` means one pod for each Kubernetes node that fits `placement`, instead of `replicas`
    pods; `placement` is None while the template cannot be read. `pin_to_node`: a pod returns to its
    first Kubernetes node. `parameters` are the `Key=Value` words of its nodes in slurm.conf.
    `prune_missing_nodes`: records in slurmctld go with their Kubernetes node.
    `protect_busy_pods`: pods with jobs are protected from eviction.
    `selector` are the labels that select its pods.
    `chart_labels` are those of its chart's release that the pods are to have.
    `last` is the status as last written.
    `own_features` are features that some of its nodes have beside those in `parameters`.
    `powered` are the ordinals that have a pod where slurmctld powers nodes up and down; None where
    all have one. Records of such nodes come from slurm.conf, and stay without a pod. Their number
    is `replicas`, and `power_saved` that of all nodes, with and without a pod.
    """

    api_version: str
    kind: str
    metadata: ObjectMeta
    cluster: str
    names: WorkerNames
    marks: WorkerMarks
    wording: Wording
    replicas: int
    per_node: bool
    placement: Placement | None
    host_network: bool
    pin_to_node: bool
    update: UpdatePolicy
    pvcs: PvcPolicy
    parameters: str
    prune_missing_nodes: bool
    protect_busy_pods: bool
    min_ready_seconds: int
    revision_history_limit: int
    selector: Mapping[str, str]
    images: ImageSources
    chart_labels: Mapping[str, str]
    last: WorkerSetStatus
    own_features: frozenset[str] = frozenset()
    powered: frozenset[int] | None = None
    power_saved: int = 0

    def owns_as(self, owner: OwnerReference) -> bool:
        """Whether an owner is of the declaring object's kind: this object or a namesake."""
        return owner.is_kind(self.api_version.partition("/")[0], self.kind)

    @property
    def is_of_cluster(self) -> bool:
        """Whether the cluster's object itself declares them: its slurmctld goes with them."""
        return self.kind == self.wording.cluster_kind

    @property
    def selector_text(self) -> str:
        """`selector` as kubectl's option `-l` takes it."""
        return selector_text(self.selector)
