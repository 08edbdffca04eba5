"""All workers of one set, each observed once, and the counts over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.kinds import Pod
from penstock.decide.observed.deletion import Deletion, deletion_of
from penstock.decide.observed.pod_aggregates import PodAggregates
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker, WorkerContext, observe_worker
from penstock.model.worker_slot import NodePlacements
from penstock.slurm.known import Known
from penstock.slurm.state import Node


@dataclass(frozen=True, slots=True)
class ObservedWorkers:
    """The workers of one set.

    `all` are in the order of the view's pods, terminating ones too; `outdated` are those that are
    not current. `placements` is None in the mode with ordinals and while the set is deleted.
    """

    all: tuple[Worker, ...]
    outdated: tuple[Worker, ...]
    aggregates: PodAggregates
    placements: NodePlacements | None
    deletion: Deletion
    slurm: SlurmSnapshot
    slurm_states: Mapping[frozenset[str], int]
    """How many of its Slurm nodes are in each state; none while they are unknown."""
    context: WorkerContext
    kubernetes_nodes: Mapping[str, KubernetesNode]
    declared: int
    """Number of workers without placements, 0 for a deleted set."""

    @property
    def replicas(self) -> int:
        """Number of workers that there must be."""
        return self.declared if self.placements is None else len(self.placements.slots)

    def outdated_of(self, workers: Sequence[Worker]) -> list[Worker]:
        """Those of these workers that are not current."""
        return [one for one in workers if not one.is_current] if self.outdated else []

    def is_last_on_node(self, worker: Worker) -> bool:
        """Whether no other pod would come to its Kubernetes node if this one was deleted."""
        if self.placements is None or not worker.is_per_node:
            return False
        return worker.kubernetes_node_name in self.placements.last


def observe_workers(
    view: WorkerSetView,
    aggregates: PodAggregates,
    placements: NodePlacements | None,
    former: ObservedWorkers | None,
    changed: Sequence[int] | None,
) -> ObservedWorkers:
    """Observe each pod of the view. Workers whose inputs are those of `former` are kept.

    `changed` are the positions of changed pods, None when the set has other pods than before.
    """
    workers = view.workers
    slurm_nodes = placements.slurm_nodes if placements is not None else None
    context = WorkerContext(
        names=workers.names,
        marks=workers.marks,
        per_node=workers.per_node,
        revisions=view.revisions.current,
        slurm_nodes=slurm_nodes,
        shared_slurm_nodes=aggregates.shared_slurm_nodes,
        are_nodes_known=isinstance(view.nodes, Known),
        are_jobs_known=isinstance(view.jobs, Known),
    )
    slurm = SlurmSnapshot.of(view.nodes, view.jobs)
    every = _observe(context, view.pods, slurm, view.kubernetes_nodes, former, changed)
    is_any_outdated = aggregates.has_other(
        context.revisions, per_node=workers.per_node, slurm_nodes=slurm_nodes
    )
    return ObservedWorkers(
        all=every,
        outdated=tuple(one for one in every if not one.is_current) if is_any_outdated else (),
        aggregates=aggregates,
        placements=placements,
        deletion=deletion_of(view),
        slurm=slurm,
        slurm_states=_states(slurm.records, aggregates.slurm_nodes, former),
        context=context,
        kubernetes_nodes=view.kubernetes_nodes,
        declared=0 if view.deleting else workers.replicas,
    )


def _observe(
    context: WorkerContext,
    pods: tuple[Pod, ...],
    slurm: SlurmSnapshot,
    kubernetes_nodes: Mapping[str, KubernetesNode],
    former: ObservedWorkers | None,
    changed: Sequence[int] | None,
) -> tuple[Worker, ...]:
    records = slurm.records

    def observe(pod: Pod) -> Worker:
        node, jobs = records.get(pod.host), slurm.jobs(pod.host)
        return observe_worker(
            context, pod, node, jobs, kubernetes_nodes.get(pod.spec.node_name or "")
        )

    if former is None or former.context != context:
        return tuple(map(observe, pods))
    # Caches and mirror keep the objects that did not change. Jobs are indexed for each decision.
    is_only_pods = (
        former.slurm.records is records
        and former.slurm.known_jobs == slurm.known_jobs
        and former.slurm.everywhere == slurm.everywhere
        and former.kubernetes_nodes == kubernetes_nodes
    )
    if is_only_pods and changed is not None:
        # Nearly always, and there may be thousands.
        found = list(former.all)
        for position in changed:
            found[position] = observe(pods[position])
        return tuple(found)
    by_uid = {one.uid: one for one in former.all}
    return tuple(
        one
        if (one := by_uid.get(pod.metadata.uid)) is not None
        and one.pod is pod
        and one.node is records.get(pod.host)
        and one.kubernetes_node is kubernetes_nodes.get(pod.spec.node_name or "")
        and one.jobs == slurm.jobs(pod.host)
        else observe(pod)
        for pod in pods
    )


def _states(
    records: Mapping[str, Node], slurm_nodes: frozenset[str], former: ObservedWorkers | None
) -> Mapping[frozenset[str], int]:
    if (
        former is not None
        and former.slurm.records is records
        and former.aggregates.slurm_nodes is slurm_nodes
    ):
        return former.slurm_states
    # Thousands of nodes are in a handful of states.
    nodes = map(records.get, slurm_nodes)
    return Counter(node.state for node in nodes if node is not None)
