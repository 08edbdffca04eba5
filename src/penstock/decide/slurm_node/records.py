"""Slurm's node records: whose they are, and which of them outlived their pod.

A record is ours by its comment, a JSON object that slurm-operator writes in the same form. Records
of pods that scale-in took are deleted: left alone they stay DOWN+DRAIN in sinfo for ever and count
against MaxNodeCount.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from penstock.api.kubernetes.kinds import Pod
from penstock.decide.action import DeleteNodeRecord, DrainNode, EventReason, SetNodeComment
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.slurm_node import drain_reason, topology
from penstock.decide.slurm_node import parameters as live_conf
from penstock.model.worker_marks import TRUE, WorkerMarks
from penstock.model.worker_set import WorkerSet
from penstock.slurm.known import Unknown
from penstock.slurm.state import Node

COMMENT_NAMESPACE = "namespace"
COMMENT_POD = "podName"
COMMENT_NODE = "node"
COMMENT_NODESET = "nodeSetName"
COMMENT_NODESET_UID = "nodeSetUID"
DRAIN = "drain"
"""Our own key: the reason of somebody else's drain, remembered while the pod lives.

The preStop hook of worker pods puts its own words in the place of any reason; this brings them
back."""
RENEW = "renew"
"""Our own key: the pod has an older template, and its record is not for the pod that comes next.

slurmctld keeps a dynamic node's record as it was first registered: a slurmd with other resources or
another GRES would be refused or misrepresented. Source: slurm-operator issue 233, and seen."""

LIVE = "conf"
"""Our own key: what the node was last given, when its pod said otherwise; see `live_conf`."""

TOPOLOGY = "topology"
"""Our own key: where its machine said that it is, while Slurm has it so."""


@dataclass(frozen=True, slots=True)
class NodeComment:
    """A comment of ours, read."""

    namespace: str
    pod: str
    node: str
    nodeset: str
    nodeset_uid: str
    drain: str | None = None
    """Somebody else's drain, which may be without words; None when there is none."""
    renew: bool = False
    """Whether the record goes before another pod comes."""
    live: str | None = None
    """What the node was given besides what its slurmd said; see `live_conf`."""
    topology: str | None = None
    """Where Slurm was told that it is; see `penstock.decide.slurm_node.topology`."""

    @property
    def text(self) -> str:
        """The comment as it is written to Slurm."""
        found = {
            COMMENT_NAMESPACE: self.namespace,
            COMMENT_POD: self.pod,
            COMMENT_NODE: self.node,
            COMMENT_NODESET: self.nodeset,
            COMMENT_NODESET_UID: self.nodeset_uid,
        }
        if self.drain is not None:
            found[DRAIN] = self.drain
        if self.renew:
            found[RENEW] = TRUE
        if self.live is not None:
            found[LIVE] = self.live
        if self.topology is not None:
            found[TOPOLOGY] = self.topology
        return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def read(comment: str) -> NodeComment | None:
    """The comment, if it is one of ours."""
    if not comment.startswith("{"):
        return None
    try:
        found = json.loads(comment)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    values = cast("dict[str, Any]", found)
    parts = [
        values.get(key, "")
        for key in (
            COMMENT_NAMESPACE,
            COMMENT_POD,
            COMMENT_NODE,
            COMMENT_NODESET,
            COMMENT_NODESET_UID,
        )
    ]
    if not all(isinstance(part, str) for part in parts) or not parts[1]:
        return None
    drained, live, place = values.get(DRAIN), values.get(LIVE), values.get(TOPOLOGY)
    return NodeComment(
        *parts,
        drain=drained if isinstance(drained, str) else None,
        renew=values.get(RENEW) == TRUE,
        live=live if isinstance(live, str) else None,
        topology=place if isinstance(place, str) else None,
    )


def is_owned_by(record: NodeComment, workers: WorkerSet) -> bool:
    """Whether a record is of exactly this object, not of a namesake before it."""
    meta = workers.metadata
    return (record.namespace, record.nodeset, record.nodeset_uid) == (
        meta.namespace,
        meta.name,
        meta.uid,
    )


def comment_action(
    workers: WorkerSet,
    pod: Pod,
    node: Node,
    *,
    going: bool = False,
    renew: bool = False,
    confs: Mapping[str, str] | None = None,
    place: str | None = None,
) -> SetNodeComment | None:
    """Keep the comment true: written for a Ready pod, and to remember somebody else's drain.

    With `confs`, the extraConf of revisions by hash, the node is given what changes live. `place`
    is what its machine says of its place in the network, None when that is not known.

    A pod that is `going` gets one in any case: without it nobody would know whose record is left.
    `renew` says that the record is not for the next pod.
    """
    old = read(node.comment)
    meta = workers.metadata
    machine = pod.spec.node_name or ""
    current = NodeComment(meta.namespace, pod.metadata.name, machine, meta.name, meta.uid)
    if pod.ready:
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
        renew=new.renew or renew,
        live=last,
        topology=topology.remembered(node, place, old.topology if old is not None else None),
    )
    change = None
    if confs is not None and pod.ready and not going:
        change = live_conf.change(workers, pod, node, last, confs)
    if change is None:
        return None if new == old else SetNodeComment(node.name, new.text)
    given = change.given
    return SetNodeComment(
        node.name,
        replace(new, live=change.told.text).text,
        tuple(sorted(given.features)),
        given.weight,
        given.gres or None,
        given.extra if last is not None or given.extra else None,
        EventReason(
            "SlurmNodeChanged", f"Node {node.name} has {given.text} now; no pod restarts for it"
        ),
        over=node.features,
    )


def _remembered(marks: WorkerMarks, node: Node, old: NodeComment | None) -> str | None:
    if not node.drain:
        return None
    if node.reason == drain_reason.terminating(marks):
        return old.drain if old else None
    return None if drain_reason.is_own_reason(marks, node.reason) else node.reason


def deletions_before_recreate(
    view: WorkerSetView, missing: Iterable[str], slurm: SlurmSnapshot
) -> tuple[DeleteNodeRecord, ...]:
    """Records that go before the pods of the `missing` nodes are made, with another template.

    A record that somebody drained stays: the drain would go with it.
    """
    if slurm.unknown_reason is not None:
        return ()
    workers, in_use = view.workers, view.aggregates.slurm_nodes
    found: list[DeleteNodeRecord] = []
    for name in missing:
        node = slurm.node(name)
        record = read(node.comment) if node is not None else None
        if node is None or record is None or name in in_use:
            continue
        if not record.renew or not is_owned_by(record, workers) or record.drain is not None:
            continue
        if may_renew(workers.marks, node) and not slurm.jobs(name):
            why = EventReason(
                "SlurmNodeRecordDeleted", f"Node {name} comes back with another template"
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
    view: WorkerSetView, wanted_pods: Collection[str], slurm: SlurmSnapshot
) -> OrphanedRecords:
    """Records of this NodeSet that have no pod and shall get none.

    A record is deleted when Slurm's answer says that no job holds it and that it takes none (DOWN,
    or drained). One that still takes jobs, as its pod was killed, is drained first. Those of gone
    machines stay while `pruneSlurmNodeRecords` says so.
    """
    if isinstance(slurm.nodes, Unknown) or slurm.unknown_reason is not None:
        return OrphanedRecords()
    unused = slurm.nodes.value.keys() - view.aggregates.slurm_nodes
    if view.places is not None:
        unused -= set(view.places.slurm_nodes.values())
    alive = view.aggregates.names | set(wanted_pods) if unused else set[str]()
    marks = view.workers.marks
    left: list[str] = []
    actions: list[DrainNode | DeleteNodeRecord] = []
    for name in sorted(unused):
        node = slurm.nodes.value[name]
        record = read(node.comment)
        if record is None or not is_owned_by(record, view.workers):
            continue
        if record.pod in alive and not _moved_on(view, record):
            continue
        left.append(name)
        gone = f"Pod ({record.namespace}/{record.pod}) is gone"
        of_gone = _of_gone_machine(view, record)
        if not node.drain and "DOWN" not in node.state:
            why = EventReason("SlurmNodeWithoutPod", gone)
            reason = f"{marks.drain_prefix}{gone}"
            actions.append(
                DrainNode(
                    name, reason, override=not drain_reason.is_foreign_reason(marks, node), why=why
                )
            )
        elif of_gone and not view.workers.prune_missing_nodes:
            continue
        elif not node.busy and not slurm.jobs(name):
            event = "DefunctSlurmNodePruned" if of_gone else "SlurmNodeRecordDeleted"
            actions.append(DeleteNodeRecord(name, EventReason(event, gone)))
    return OrphanedRecords(tuple(left), tuple(actions))


def _moved_on(view: WorkerSetView, record: NodeComment) -> bool:
    """Whether the pod of that name is another Slurm node now, as its machine is called otherwise.

    In DaemonSet mode a machine's pod always has the same name; in the other one, the same node.
    """
    return view.places is not None and view.workers.names.ordinal_of(record.pod) is None


def _of_gone_machine(view: WorkerSetView, record: NodeComment) -> bool:
    """Whether a pod in DaemonSet mode made it, and its machine is gone or called otherwise."""
    if view.places is None or view.workers.names.ordinal_of(record.pod) is not None:
        return False
    return record.node not in view.kubernetes_nodes or record.node in view.places.slurm_nodes
