"""Nodes that are DOWN though their pod is well.

The preStop hook sets a node DOWN, and slurmctld sets one DOWN that stopped responding; Slurm's
default (`ReturnToService=0`, slurm.conf(5)) keeps both DOWN when the pod is back. Setting a node to
RESUME clears DOWN, DRAIN and FAIL, so it is done only where no drain of somebody else is lost.
"""

from __future__ import annotations

from penstock.api.kubernetes.kinds import Pod
from penstock.decide.action import EventReason, ResumeNode
from penstock.decide.observed import drain_reason, node_comment
from penstock.decide.observed.pod import slurmd_started_at
from penstock.model.worker_marks import WorkerMarks
from penstock.slurm.state import Node

SKEW_S = 2
"""Whole seconds on both sides of the comparison of two start times."""


def resume_action(marks: WorkerMarks, pod: Pod, node: Node) -> ResumeNode | None:
    """Bring the node back, if it is DOWN by us or because it fell silent and answers again."""
    if "DOWN" not in node.state or not is_registered(pod, node):
        return None
    ours = drain_reason.is_own_reason(marks, node.reason)
    if node.drain and not ours:
        return None
    if not ours and not _was_not_responding(pod, node):
        return None
    if node.state & {"FAIL", "FAILING"}:
        return None
    return ResumeNode(
        node.name, EventReason("NodeResumed", f"Pod {pod.metadata.name} is ready again")
    )


def overwritten_drain_reason(
    marks: WorkerMarks, node: Node, record: node_comment.NodeComment | None
) -> str | None:
    """The reason, perhaps empty, of somebody's drain that the preStop hook wrote over."""
    if record is None or not node.drain or node.reason != drain_reason.terminating(marks):
        return None
    return record.drain


def is_registered(pod: Pod, node: Node) -> bool:
    """Whether Slurm's record comes from the slurmd that runs in the pod now."""
    if not pod.ready or "NOT_RESPONDING" in node.state:
        return False
    started = slurmd_started_at(pod)
    if not node.slurmd_start_time or started is None:
        return True
    return node.slurmd_start_time >= started - SKEW_S


def _was_not_responding(pod: Pod, node: Node) -> bool:
    """Whether slurmctld alone has set it DOWN; somebody's reason may begin with its words."""
    said = drain_reason.NOT_RESPONDING
    return node.reason == said or (node.reason.startswith(said) and _has_moved(pod, node))


def _has_moved(pod: Pod, node: Node) -> bool:
    record = node_comment.read(node.comment)
    return record is not None and record.node != (pod.spec.node_name or "")
