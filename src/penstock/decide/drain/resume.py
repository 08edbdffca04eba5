"""Nodes that are DOWN though their pod is well.

The preStop hook sets a node DOWN, and slurmctld sets one DOWN that stopped responding; Slurm's
default (`ReturnToService=0`, slurm.conf(5)) keeps both DOWN when the pod is back. Setting a node to
RESUME clears DOWN, DRAIN and FAIL, so it is done only where no drain of somebody else is lost.
"""

from __future__ import annotations

from penstock.catalog.event import Event
from penstock.decide.action import EventReason, ResumeNode
from penstock.decide.observed import drain_reason
from penstock.decide.observed.node_comment import NodeComment
from penstock.decide.observed.worker import Worker
from penstock.model.worker_marks import WorkerMarks
from penstock.slurm.state import Node


def resume_action(marks: WorkerMarks, worker: Worker, node: Node) -> ResumeNode | None:
    """Bring the node back, if it is DOWN by us or because it fell silent and answers again."""
    if "DOWN" not in node.state or not worker.is_registered:
        return None
    ours = drain_reason.is_own_reason(marks, node.reason)
    if node.drain and not ours:
        return None
    if not ours and not _was_not_responding(worker, node):
        return None
    if node.state & {"FAIL", "FAILING"}:
        return None
    return ResumeNode(
        node.name,
        EventReason(Event.NODE_RESUMED, f"Resumed {node.name}: pod {worker.name} is ready again"),
    )


def overwritten_drain_reason(
    marks: WorkerMarks, node: Node, comment: NodeComment | None
) -> str | None:
    """The reason, perhaps empty, of somebody's drain that the preStop hook wrote over."""
    if comment is None or not node.drain or node.reason != drain_reason.terminating(marks):
        return None
    return comment.drain


def _was_not_responding(worker: Worker, node: Node) -> bool:
    """Whether slurmctld alone has set it DOWN; somebody's reason may begin with its words."""
    said = drain_reason.NOT_RESPONDING
    return node.reason == said or (node.reason.startswith(said) and _has_moved(worker))


def _has_moved(worker: Worker) -> bool:
    comment = worker.comment
    return comment is not None and comment.node != (worker.pod.spec.node_name or "")
