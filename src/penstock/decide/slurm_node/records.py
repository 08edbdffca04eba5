"""Slurm's node records: whose they are, and which of them outlived their pod.

A record is ours by its comment, a JSON object that slurm-operator writes in the same form. Records
of pods that scale-in took are deleted: left alone they stay DOWN+DRAIN in sinfo for ever and count
against MaxNodeCount.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.catalog.event import Event
from penstock.decide.action import DeleteNodeRecord, DrainNode, EventReason, SetNodeComment
from penstock.decide.observed import drain_reason, node_comment
from penstock.decide.observed.node_comment import NodeComment, is_owned_by
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.slurm_node import parameters, topology
from penstock.model.worker_marks import WorkerMarks
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_slot import NodePlacements
from penstock.slurm.known import Unknown
from penstock.slurm.state import Node


def comment_action(
    workers: WorkerSet,
    worker: Worker,
    *,
    going: bool = False,
    parameters_by_revision: Mapping[str, str] | None = None,
) -> SetNodeComment | None:
    """Keep the comment true: written for a Ready pod, and to remember somebody else's drain.

    With `parameters_by_revision`, the extraConf of revisions by hash, the node of a current worker
    gets the parameters that change live. The record of any other one is not for the next pod.

    A pod that is `going` gets a comment in any case, which shows whose record is left.
    """
    node = worker.node
    if node is None:
        return None
    old, pod = worker.comment, worker.pod
    meta, keys = workers.metadata, workers.marks.comment
    current = NodeComment(
        meta.namespace, worker.name, pod.spec.node_name or "", meta.name, meta.uid
    )
    if worker.is_ready:
        new = current
    elif old is not None and is_owned_by(old, workers):
        new = old
    elif going:
        new = current
    else:
        return None
    last = old.live if old is not None and is_owned_by(old, workers) else None
    new = replace(
        new,
        drain=_remembered(workers.marks, node, old),
        renew=new.renew or not worker.is_current,
        live=last,
        topology=topology.remembered(
            node,
            topology.wanted(workers.marks, worker.kubernetes_node),
            old.topology if old is not None else None,
        ),
        # A check may comment a node before its first comment of ours.
        check=old.check if old is not None else _check_comment(node),
    )
    change = None
    if parameters_by_revision is not None and worker.is_current and worker.is_ready and not going:
        change = parameters.change(workers, pod, node, last, parameters_by_revision)
    if change is None:
        return None if new == old else SetNodeComment(node.name, new.text(keys))
    given = change.given
    return SetNodeComment(
        node.name,
        replace(new, live=change.recorded.text).text(keys),
        tuple(sorted(given.features)),
        given.weight,
        given.gres or None,
        given.extra if last is not None or given.extra else None,
        EventReason(
            Event.NODE_CHANGED, f"Node {node.name} has {given.text} now; no pod restarts for it"
        ),
        over=node.features,
    )


def _check_comment(node: Node) -> str | None:
    is_json = node_comment.values(node.comment) is not None
    return (node_comment.check_comment(node.comment) or None) if is_json else None


def _remembered(marks: WorkerMarks, node: Node, old: NodeComment | None) -> str | None:
    if not node.drain:
        return None
    if node.reason == drain_reason.terminating(marks):
        return old.drain if old else None
    return None if drain_reason.is_own_reason(marks, node.reason) else node.reason


def deletions_before_recreate(
    view: WorkerSetView, observed: ObservedWorkers, missing: Iterable[str]
) -> tuple[DeleteNodeRecord, ...]:
    """Records that go before the pods of the `missing` nodes are made, with another template.

    A record that somebody drained stays: the drain would go with it.
    """
    slurm = observed.slurm
    if slurm.unknown_reason is not None or view.workers.powered is not None:
        return ()
    workers, in_use = view.workers, observed.aggregates.slurm_nodes
    keys = workers.marks.comment
    found: list[DeleteNodeRecord] = []
    for name in missing:
        node = slurm.node(name)
        record = node_comment.read(keys, node.comment) if node is not None else None
        if node is None or record is None or name in in_use:
            continue
        if not record.renew or not is_owned_by(record, workers) or record.drain is not None:
            continue
        if may_renew(workers.marks, node) and not slurm.jobs(name):
            why = EventReason(
                Event.NODE_RECORD_DELETED, f"Node {name} comes back with another template"
            )
            found.append(DeleteNodeRecord(name, why, renews=node.slurmd_start_time))
    return tuple(found)


def may_renew(marks: WorkerMarks, node: Node) -> bool:
    """Whether a record takes no jobs, has none, and nobody's word about it would be lost."""
    out = node.drain or "DOWN" in node.state
    return out and not node.busy and not drain_reason.is_foreign_reason(marks, node)


@dataclass(frozen=True, slots=True)
class OrphanedRecords:
    """Records that outlived their pod: all that are left, and what to do now."""

    left: tuple[str, ...] = ()
    actions: tuple[DrainNode | DeleteNodeRecord, ...] = ()


def orphaned_records(
    view: WorkerSetView, observed: ObservedWorkers, wanted_pods: Collection[str]
) -> OrphanedRecords:
    """Records of this NodeSet that have no pod and will get none.

    A record is deleted when no job uses it and it takes none (DOWN, or drained). One that still
    takes jobs, as its pod was killed, is drained first. Those of deleted Kubernetes nodes stay
    without `pruneSlurmNodeRecords`.
    """
    slurm, placements = observed.slurm, observed.placements
    if view.workers.powered is not None:
        return OrphanedRecords()
    if isinstance(slurm.nodes, Unknown) or slurm.unknown_reason is not None:
        return OrphanedRecords()
    unused = slurm.nodes.value.keys() - observed.aggregates.slurm_nodes
    if placements is not None:
        unused -= set(placements.slurm_nodes.values())
    alive = observed.aggregates.names | set(wanted_pods) if unused else set[str]()
    marks = view.workers.marks
    left: list[str] = []
    actions: list[DrainNode | DeleteNodeRecord] = []
    for name in sorted(unused):
        node = slurm.nodes.value[name]
        record = node_comment.read(marks.comment, node.comment)
        if record is None or not is_owned_by(record, view.workers):
            continue
        if record.pod in alive and not _moved_on(view, placements, record):
            continue
        left.append(name)
        gone = f"Pod ({record.namespace}/{record.pod}) is gone"
        of_gone = _of_gone_node(view, placements, record)
        if not node.drain and "DOWN" not in node.state:
            why = EventReason(Event.NODE_WITHOUT_POD, gone)
            reason = f"{marks.drain_prefix}{gone}"
            actions.append(
                DrainNode(
                    name, reason, override=not drain_reason.is_foreign_reason(marks, node), why=why
                )
            )
        elif of_gone and not view.workers.prune_missing_nodes:
            continue
        elif not node.busy and not slurm.jobs(name):
            event = Event.NODE_PRUNED if of_gone else Event.NODE_RECORD_DELETED
            actions.append(DeleteNodeRecord(name, EventReason(event, gone)))
    return OrphanedRecords(tuple(left), tuple(actions))


def _moved_on(view: WorkerSetView, placements: NodePlacements | None, record: NodeComment) -> bool:
    """Whether the pod of that name has another Slurm node now, as the name is declared otherwise.

    In DaemonSet mode the pod of a Kubernetes node always has the same name; else the same Slurm
    node.
    """
    return placements is not None and view.workers.names.ordinal_of(record.pod) is None


def _of_gone_node(
    view: WorkerSetView, placements: NodePlacements | None, record: NodeComment
) -> bool:
    """Whether its pod was of DaemonSet mode and its Kubernetes node is gone or renamed."""
    if placements is None or view.workers.names.ordinal_of(record.pod) is not None:
        return False
    return record.node not in view.kubernetes_nodes or record.node in placements.slurm_nodes
