"""One worker: its pod, Slurm node, jobs and Kubernetes node, and facts derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.kinds import Pod
from penstock.decide.observed import cordon, node_comment
from penstock.decide.observed import pod as observed_pod
from penstock.decide.observed.job_deadline import deadline_of
from penstock.decide.observed.node_comment import NodeComment
from penstock.model.worker_marks import WorkerMarks
from penstock.model.worker_names import WorkerNames
from penstock.slurm.state import Job, Node


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What all workers of one set are observed with.

    `revisions` are the hash that new pods get and those of equal meaning. `slurm_nodes` are the
    Slurm node names by Kubernetes node in DaemonSet mode. Several pods that are not terminating
    have one of the `shared_slurm_nodes`.
    """

    names: WorkerNames
    marks: WorkerMarks
    per_node: bool
    revisions: frozenset[str]
    slurm_nodes: Mapping[str, str] | None
    shared_slurm_nodes: frozenset[str]
    are_nodes_known: bool
    are_jobs_known: bool


@dataclass(frozen=True, slots=True, eq=False)
class Worker:
    """One worker pod with its Slurm node, jobs and Kubernetes node.

    It is made once and is the same object while its inputs are unchanged, so workers are compared
    by identity. `node` is None when Slurm has none of that name or its nodes are unknown; `jobs`
    are the unfinished ones, None when unknown. `comment` is that of `node`, if it is one of ours.
    """

    pod: Pod
    node: Node | None
    jobs: tuple[Job, ...] | None
    kubernetes_node: KubernetesNode | None
    name: str
    """Of the pod."""
    slurm_node: str
    """Name under which its slurmd registers."""
    kubernetes_node_name: str
    """The Kubernetes node that it runs on or is bound to by affinity; empty for any."""
    ordinal: int | None
    is_per_node: bool
    """Whether it was made for one Kubernetes node (DaemonSet mode)."""
    is_in_place: bool
    """Whether it is of the declared scaling mode and has the declared Slurm node name."""
    is_current: bool
    """Whether it is in place and of the current revision or one of equal meaning."""
    is_ready: bool
    is_terminating: bool
    shares_slurm_node: bool
    is_slurm_known: bool
    """Whether both nodes and jobs of Slurm are known."""
    comment: NodeComment | None
    is_cordoned_by_operator: bool
    is_cordoned_by_user: bool

    @property
    def uid(self) -> str:
        """Of the pod."""
        return self.pod.metadata.uid

    @property
    def annotations(self) -> Mapping[str, str]:
        """Of the pod."""
        return self.pod.metadata.annotations

    @property
    def is_busy(self) -> bool:
        """Whether a job uses its Slurm node, or has processes left there."""
        return bool(self.jobs) or (self.node is not None and self.node.busy)

    @property
    def is_finished(self) -> bool:
        """Whether all its containers ended for good."""
        return observed_pod.is_finished(self.pod)

    @property
    def is_never_bound(self) -> bool:
        """Whether it never had a Kubernetes node."""
        return observed_pod.is_never_bound(self.pod)

    @property
    def has_never_started(self) -> bool:
        """Whether the kubelet reports that slurmd waits for its first start."""
        return observed_pod.has_never_started(self.pod)

    @property
    def slurmd_started_at(self) -> float | None:
        """Start of the running slurmd in Unix seconds; None when none runs."""
        return observed_pod.slurmd_started_at(self.pod)

    @property
    def is_registered(self) -> bool:
        """Whether Slurm has its node from the slurmd that runs in the pod now."""
        return self.node is not None and observed_pod.is_registered(self.pod, self.node)

    @property
    def cordon_cause(self) -> str | None:
        """The cause for which Penstock cordons it, by its mark."""
        return cordon.marked_cause(self.pod)

    @property
    def deletion_requested_at(self) -> str | None:
        """The time since which it waits for its deletion, by its mark."""
        return cordon.deletion_requested_at(self.pod)

    @property
    def jobs_deadline(self) -> int | None:
        """Latest end of its jobs in Unix seconds; None without jobs."""
        return deadline_of(self.jobs or ())

    def available_in(self, min_ready_seconds: int, now: float) -> float | None:
        """Seconds until it counts as available, 0 when it does, None while it is not ready."""
        return observed_pod.available_in(self.pod, min_ready_seconds, now)


def observe_worker(
    context: WorkerContext,
    pod: Pod,
    node: Node | None,
    jobs: tuple[Job, ...] | None,
    kubernetes_node: KubernetesNode | None,
) -> Worker:
    """Derive the facts of one worker from its inputs."""
    meta, marks = pod.metadata, context.marks
    slurm_node = pod.host
    on = observed_pod.kubernetes_node_name(pod)
    per_node = observed_pod.is_per_node(marks, pod)
    in_place = per_node == context.per_node
    if in_place and per_node and context.slurm_nodes is not None and pod.spec.hostname:
        in_place = context.slurm_nodes.get(on, slurm_node) == slurm_node
    return Worker(
        pod,
        node,
        jobs,
        kubernetes_node,
        meta.name,
        slurm_node,
        on,
        context.names.ordinal_of(meta.name),
        per_node,
        in_place,
        in_place and marks.revision_of(meta.labels) in context.revisions,
        pod.ready,
        meta.deleting,
        slurm_node in context.shared_slurm_nodes,
        context.are_nodes_known and context.are_jobs_known,
        node_comment.read(marks.comment, node.comment) if node is not None else None,
        cordon.is_cordoned_by_operator(marks, pod, node),
        cordon.is_cordoned_by_user(marks, pod, node),
    )
