"""Slurm's node records: whose they are, and which of them outlived their pod.

A record is ours by its comment, a JSON object that slurm-operator writes in the same form. Records
of pods that scale-in took are deleted: left alone they stay DOWN+DRAIN in sinfo for ever and count
against MaxNodeCount.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, cast

from penstock.api.core import Pod
from penstock.api.slinky import wellknown
from penstock.api.slinky.nodeset import NodeSet
from penstock.decide import drain_reason
from penstock.decide.action import DeleteNodeRecord, DrainNode, SetNodeComment, Why
from penstock.decide.pods import slurm_node_name
from penstock.decide.slurm_view import SlurmView
from penstock.slurm.known import Unknown
from penstock.slurm.model import Node

DRAIN = "drain"
"""Our own key: the reason of somebody else's drain, remembered while the pod lives.

The preStop hook of worker pods puts its own words in the place of any reason; this brings them
back."""


@dataclass(frozen=True, slots=True)
class Record:
    """A comment of ours, read."""

    namespace: str
    pod: str
    node: str
    nodeset: str
    nodeset_uid: str
    drain: str | None = None
    """Somebody else's drain, which may be without words; None when there is none."""

    @property
    def text(self) -> str:
        """The comment as it is written to Slurm."""
        found = {
            wellknown.COMMENT_NAMESPACE: self.namespace,
            wellknown.COMMENT_POD: self.pod,
            wellknown.COMMENT_NODE: self.node,
            wellknown.COMMENT_NODESET: self.nodeset,
            wellknown.COMMENT_NODESET_UID: self.nodeset_uid,
        }
        if self.drain is not None:
            found[DRAIN] = self.drain
        return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def read(comment: str) -> Record | None:
    """The comment, if it is one of ours."""
    if not comment.startswith("{"):
        return None
    try:
        found = json.loads(comment)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    values = cast("dict[str, Any]", found)
    parts = [
        values.get(key, "")
        for key in (
            wellknown.COMMENT_NAMESPACE,
            wellknown.COMMENT_POD,
            wellknown.COMMENT_NODE,
            wellknown.COMMENT_NODESET,
            wellknown.COMMENT_NODESET_UID,
        )
    ]
    if not all(isinstance(part, str) for part in parts) or not parts[1]:
        return None
    drained = values.get(DRAIN)
    return Record(*parts, drain=drained if isinstance(drained, str) else None)


def belongs(record: Record, nodeset: NodeSet) -> bool:
    """Whether a record is of exactly this NodeSet, not of a namesake before it."""
    meta = nodeset.metadata
    return (record.namespace, record.nodeset, record.nodeset_uid) == (
        meta.namespace,
        meta.name,
        meta.uid,
    )


def comment_action(
    nodeset: NodeSet, pod: Pod, node: Node, *, going: bool = False
) -> SetNodeComment | None:
    """Keep the comment true: written for a Ready pod, and to remember somebody else's drain.

    A pod that is `going` gets one in any case: without it nobody would know whose record is left.
    """
    old = read(node.comment)
    meta = nodeset.metadata
    machine = pod.spec.node_name or ""
    current = Record(meta.namespace, pod.metadata.name, machine, meta.name, meta.uid)
    if pod.ready:
        new = current
    elif old is not None and belongs(old, nodeset):
        new = old
    elif going:
        new = current
    else:
        return None
    new = replace(new, drain=_remembered(node, old))
    return None if new == old else SetNodeComment(node.name, new.text)


def _remembered(node: Node, old: Record | None) -> str | None:
    if not node.drain:
        return None
    if node.reason == drain_reason.TERMINATING:
        return old.drain if old else None
    return None if drain_reason.is_ours(node.reason) else node.reason


@dataclass(frozen=True, slots=True)
class Defunct:
    """Records that outlived their pod: all that are left, and what to do now."""

    left: tuple[str, ...] = ()
    actions: tuple[DrainNode | DeleteNodeRecord, ...] = ()


def defunct(
    nodeset: NodeSet, pods: Collection[Pod], wanted_pods: Collection[str], slurm: SlurmView
) -> Defunct:
    """Records of this NodeSet that have no pod and shall get none.

    A record is deleted when Slurm's answer says that no job holds it and that it takes none (DOWN,
    or drained). One that still takes jobs, as its pod was killed, is drained first.
    """
    if isinstance(slurm.nodes, Unknown) or slurm.silence is not None:
        return Defunct()
    alive = {pod.metadata.name for pod in pods} | set(wanted_pods)
    in_use = {slurm_node_name(pod) for pod in pods}
    left: list[str] = []
    actions: list[DrainNode | DeleteNodeRecord] = []
    for name, node in sorted(slurm.nodes.value.items()):
        record = read(node.comment)
        if record is None or not belongs(record, nodeset):
            continue
        if record.pod in alive or name in in_use:
            continue
        left.append(name)
        gone = f"Pod ({record.namespace}/{record.pod}) is gone"
        if not node.drain and "DOWN" not in node.state:
            why = Why("SlurmNodeWithoutPod", gone)
            reason = f"{wellknown.REASON_PREFIX}{gone}"
            actions.append(DrainNode(name, reason, override=not drain_reason.stands(node), why=why))
        elif not node.busy and not slurm.jobs(name):
            actions.append(DeleteNodeRecord(name, Why("SlurmNodeRecordDeleted", gone)))
    return Defunct(tuple(left), tuple(actions))
