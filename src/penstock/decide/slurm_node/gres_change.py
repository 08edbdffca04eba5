"""How long a node stays drained after its counts of generic resources changed.

slurmctld compares the counts with what slurmd reports when it registers next. When a job has taken
such a resource by then, it drains the node for good ("gres/gpu count changed and jobs are using
them") and calls it INVALID_REG until its slurmd starts again. That slurmd answers again is no proof
that it has registered: an answer to an earlier question counts as one. Seen with Slurm 26.05.5.
"""

from __future__ import annotations

from penstock.model.worker_marks import WorkerMarks
from penstock.slurm.state import Node

_REASON = "GRES changes"
SETTLE_S = 4.0
"""slurmctld asks for a registration within a second, and counts answers to earlier questions up to
two seconds later; its times are whole seconds."""


def reason(marks: WorkerMarks) -> str:
    """The reason of such a drain. It has the mark of the operator, so any process ends it."""
    return f"{marks.drain_prefix}{_REASON}"


def drained(marks: WorkerMarks, node: Node) -> bool:
    """Whether the node takes no jobs because its counts change."""
    return node.drain and node.reason == reason(marks)


def settles_in(marks: WorkerMarks, node: Node, now: float) -> float | None:
    """Seconds for which such a drain still stands, None when there is none or it may end."""
    left = node.reason_since + SETTLE_S - now
    return min(left, SETTLE_S) if drained(marks, node) and left > 0 else None
