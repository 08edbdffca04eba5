"""Whether an action about a Slurm node is still valid for the present state of Slurm.

A decision may be older than an administrator's command. The actor checks here, with an answer to a
request sent after the decision, and drops invalid actions; the next reconcile decides again.
Deletes of pods have a stricter check: `deletion_guard.can_delete`.
"""

from __future__ import annotations

from penstock.decide.action import (
    DeleteNodeRecord,
    DrainNode,
    PowerDownNode,
    ResumeNode,
    UndrainNode,
)
from penstock.decide.observed import drain_reason
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.slurm_node import records
from penstock.model.worker_marks import WorkerMarks
from penstock.slurm.state import Node


def is_still_valid(
    marks: WorkerMarks,
    action: DrainNode | UndrainNode | ResumeNode | PowerDownNode | DeleteNodeRecord,
    slurm: SlurmSnapshot,
) -> bool:
    """Whether to send it. Nothing is sent while Slurm is unknown."""
    node = slurm.node(action.node)
    if node is None or slurm.unknown_reason is not None:
        return False
    ours = drain_reason.is_own_reason(marks, node.reason)
    match action:
        case DrainNode():
            if action.while_idle and (node.busy or slurm.jobs(action.node)):
                return False
            # Somebody else was faster, perhaps without a reason: their drain stays.
            return not (node.drain and not ours)
        case UndrainNode():
            # On a node that is DOWN it would take the reason away, by which it is known as ours.
            return node.drain and ours and "DOWN" not in node.state
        case ResumeNode():
            silent = not node.drain and node.reason.startswith(drain_reason.NOT_RESPONDING)
            return "DOWN" in node.state and (ours or silent)
        case PowerDownNode():
            return not is_going_down(node)
        case DeleteNodeRecord():
            idle = not node.busy and not slurm.jobs(action.node)
            if action.renews is not None:
                former = node.slurmd_start_time == action.renews
                return former and idle and records.may_renew(marks, node)
            return idle and (node.drain or "DOWN" in node.state)


def is_going_down(node: Node) -> bool:
    """Whether slurmctld powers it down already, or will once it is free."""
    return "POWER_DOWN" in node.state or node.is_powered_down
