"""Sums over all pods of a NodeSet, kept while none of their inputs changes.

Most of what changes in thousands of pods (conditions, annotations, times) changes none of this.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.api.cluster.pod_names import ordinal_in
from penstock.api.kubernetes.kinds import Pod
from penstock.decide.observed.pod import ENDED, is_per_node, kubernetes_node_name
from penstock.model.worker_marks import WorkerMarks
from penstock.model.worker_names import WorkerNames


@dataclass(frozen=True, slots=True)
class PodAggregates:
    """Sums over `pods`.

    `slurm_nodes` are their Slurm nodes, of which several living pods claim the `shared_slurm_nodes`
    ones. `ordinals` are those of their names, of pods that have one. `by_revision` are uids by the
    template's hash and whether the pod is of one Kubernetes node, by labels. `daemons` counts
    those, and `slurm_node_by_node` has the Slurm node by Kubernetes node of each. `ready` counts
    those that do not terminate, `started` those that the kubelet or the scheduler has reported on.
    """

    pods: tuple[Pod, ...]
    names: frozenset[str]
    slurm_nodes: frozenset[str]
    shared_slurm_nodes: frozenset[str]
    ordinals: Mapping[str, int]
    by_revision: Mapping[tuple[str | None, bool], tuple[str, ...]]
    slurm_node_by_node: Mapping[str, str]
    daemons: int
    terminating: bool
    ended: bool
    ready: int
    started: int

    def has_other(
        self, revisions: Collection[str], *, per_node: bool, slurm_nodes: Mapping[str, str] | None
    ) -> bool:
        """Whether any pod may have another revision, scaling mode or Slurm node name."""
        if any(
            revision not in revisions or mode != per_node for revision, mode in self.by_revision
        ):
            return True
        if not per_node or slurm_nodes is None:
            return False
        here = self.slurm_node_by_node
        return len(here) < self.daemons or any(
            slurm_nodes.get(node, name) != name for node, name in here.items()
        )


def aggregate(names_: WorkerNames, marks: WorkerMarks, pods: tuple[Pod, ...]) -> PodAggregates:
    """Of the pods of one worker set."""
    by_revision: defaultdict[tuple[str | None, bool], list[str]] = defaultdict(list)
    for pod in pods:
        labels = pod.metadata.labels
        key = (marks.revision_of(labels), is_per_node(marks, pod))
        by_revision[key].append(pod.metadata.uid)
    alive = [pod for pod in pods if not pod.metadata.deleting]
    hosts = [pod.host for pod in alive]
    claimed = frozenset(hosts)
    shared = frozenset[str]()
    if len(claimed) < len(hosts):
        shared = frozenset(name for name, count in Counter(hosts).items() if count > 1)
    names = [pod.metadata.name for pod in pods]
    prefix = names_.pod_prefix
    ordinals = ((name, ordinal_in(prefix, name)) for name in names)
    daemons = [pod for pod in pods if is_per_node(marks, pod)]
    everyone = len(alive) == len(pods)
    return PodAggregates(
        pods=pods,
        names=frozenset(names),
        slurm_nodes=claimed if everyone else frozenset(pod.host for pod in pods),
        shared_slurm_nodes=shared,
        ordinals={name: number for name, number in ordinals if number is not None},
        by_revision={key: tuple(uids) for key, uids in by_revision.items()},
        slurm_node_by_node={kubernetes_node_name(pod): pod.host for pod in daemons},
        daemons=len(daemons),
        terminating=not everyone,
        ended=any(pod.status.phase in ENDED for pod in pods),
        ready=sum(1 for pod in alive if pod.ready),
        started=sum(1 for pod in pods if pod.status.phase),
    )


def changed_positions(before: Sequence[Pod], pods: Sequence[Pod]) -> tuple[int, ...] | None:
    """Where the objects differ; None unless these are the same pods in the same order.

    Caches keep the objects that did not change, so identity shows which did.
    """
    if len(before) != len(pods):
        return None
    pairs = enumerate(zip(before, pods, strict=True))
    changed = tuple([position for position, (old, new) in pairs if old is not new])
    if any(before[one].metadata.uid != pods[one].metadata.uid for one in changed):
        return None
    return changed


def update_aggregates(
    before: PodAggregates | None,
    names: WorkerNames,
    marks: WorkerMarks,
    pods: tuple[Pod, ...],
    changed: Sequence[int] | None,
) -> PodAggregates:
    """The same as `aggregate`; cheap when `before` is of the same pods and few have `changed`."""
    if before is None or changed is None:
        return aggregate(names, marks, pods)
    for one in changed:
        if _aggregated_fields(marks, before.pods[one]) != _aggregated_fields(marks, pods[one]):
            return aggregate(names, marks, pods)
    return replace(before, pods=pods)


def _aggregated_fields(marks: WorkerMarks, pod: Pod) -> tuple[object, ...]:
    """All fields of one pod that `aggregate` reads."""
    meta = pod.metadata
    labels = meta.labels
    return (
        (meta.uid, meta.name, meta.deleting, pod.host, pod.ready, pod.status.phase),
        marks.revision_of(labels),
        per_node := is_per_node(marks, pod),
        kubernetes_node_name(pod) if per_node else "",
    )
