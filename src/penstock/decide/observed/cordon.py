"""Who cordoned a worker pod: the operator, by its mark, or a user.

With its own cordon Penstock writes the annotation `cordoned-for`, with the cause and the time. A
cordon without that mark is a user's. When the operator takes its cordon back the mark becomes
`nobody`: any later cordon is a user's.
"""

from __future__ import annotations

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.api.kubernetes.kinds import Pod
from penstock.decide.observed import drain_reason
from penstock.decide.observed.drain_reason import DELETION_REASONS
from penstock.model.worker_marks import TRUE, WorkerMarks
from penstock.slurm.state import Node

RELEASED = "nobody"


def marked_cause(pod: Pod) -> str | None:
    """The cause for which Penstock cordons the pod, by its mark; None when it does not."""
    cause = pod.metadata.annotations.get(CORDONED_FOR, RELEASED).partition(" ")[0]
    return None if cause == RELEASED else cause


def deletion_requested_at(pod: Pod) -> str | None:
    """The time since which the pod waits for its deletion, by its mark."""
    cause, _, since = pod.metadata.annotations.get(CORDONED_FOR, "").partition(" since ")
    return since if since and cause in DELETION_REASONS else None


def is_cordoned_by_operator(marks: WorkerMarks, pod: Pod, node: Node | None) -> bool:
    """Whether an operator set the first cordon annotation of the pod.

    By our mark, or, on a pod of slurm-operator, by a drain reason that only an operator's own
    cordon leads to.
    """
    annotations = pod.metadata.annotations
    if CORDONED_FOR in annotations:
        return marked_cause(pod) is not None
    if annotations.get(marks.cordon[0]) != TRUE or node is None or not node.drain:
        return False
    inherited = {
        drain_reason.plain_node_cordon(marks, pod),
        *(reason(marks, pod) for reason in DELETION_REASONS.values()),
    }
    return node.reason in inherited


def is_cordoned_by_user(marks: WorkerMarks, pod: Pod, node: Node | None) -> bool:
    """Whether a user cordoned the pod; any key but the first is always a user's."""
    annotations = pod.metadata.annotations
    own, *others = marks.cordon
    if any(annotations.get(key) == TRUE for key in others):
        return True
    return annotations.get(own) == TRUE and not is_cordoned_by_operator(marks, pod, node)
