"""Why a Slurm node has to be drained, and the next update of it.

The pod is to be deleted (by scale-in, by an update or by the deletion of its NodeSet), a user
cordoned the pod (either spelling of pod-cordon), or the Kubernetes node is unschedulable. A
pod-cordon of a user is never removed; see `penstock.decide.observed.cordon`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.base import times
from penstock.catalog.event import Event, deletion_of
from penstock.decide.action import DrainNode, EventReason, ResumeNode, UndrainNode
from penstock.decide.drain import resume
from penstock.decide.observed import drain_reason
from penstock.decide.observed.cordon import RELEASED
from penstock.decide.observed.drain_reason import DELETION_REASONS, DrainCause
from penstock.decide.observed.worker import Worker
from penstock.decide.slurm_node import gres_change
from penstock.model.worker_marks import TRUE, WorkerMarks
from penstock.slurm.state import Node

REASONS = {
    DrainCause.SCALE_IN: Event.SCALE_IN,
    DrainCause.UPDATE: Event.ROLLING_UPDATE,
    DrainCause.POD: Event.POD_CORDON,
    DrainCause.NODE: Event.NODE_CORDON,
}


def event_reason(marks: WorkerMarks, cause: DrainCause) -> str:
    """The reason of events about pods that go, or nodes that are drained, for this cause."""
    return deletion_of(marks.kind) if cause is DrainCause.DELETION else REASONS[cause]


@dataclass(frozen=True, slots=True)
class DrainRequest:
    """Why a node has to be drained, and the reason to give to Slurm."""

    cause: DrainCause
    reason: str
    user: bool
    """Whether a user cordoned the pod as well."""
    marks: WorkerMarks

    @property
    def why(self) -> EventReason:
        """For the event."""
        reason = event_reason(self.marks, self.cause)
        return EventReason(reason, self.reason.removeprefix(self.marks.drain_prefix))


def drain_request(
    marks: WorkerMarks,
    worker: Worker,
    deletion: DrainCause | None = None,
    propagated: Sequence[str] = (),
) -> DrainRequest | None:
    """Why the node of a worker has to be drained; None for no reason.

    `deletion` is the cause for which its pod is to be deleted. The reason of a user's own cordon
    has priority, as that cordon remains when the other causes are gone.
    """
    pod, user = worker.pod, worker.is_cordoned_by_user
    on = worker.kubernetes_node
    cordoned = on if on is not None and on.spec.unschedulable else None
    cause = deletion or (DrainCause.NODE if cordoned else DrainCause.POD if user else None)
    if cause is None:
        return None
    if user or (cordoned is None and not cause.deletes_pod):
        reason = drain_reason.pod_cordon(marks, pod)
    elif cordoned is None or cause.deletes_pod:
        reason = DELETION_REASONS[cause](marks, pod)
    else:
        reason = drain_reason.node_cordon(marks, pod, cordoned, propagated)
    return DrainRequest(cause, reason, user, marks)


def cordon_changes(
    marks: WorkerMarks, worker: Worker, request: DrainRequest | None, now: float
) -> dict[str, str | None]:
    """Changes of the pod's annotations so that they show the request, and whose it is."""
    have, mark = worker.annotations, worker.cordon_cause
    key = marks.cordon[0]
    if request is None or request.cause is DrainCause.POD:
        if mark is None and not worker.is_cordoned_by_operator:
            return {}
        return {key: None, CORDONED_FOR: RELEASED}
    if mark is None and have.get(key) == TRUE and request.user:
        return {}
    changes: dict[str, str | None] = {}
    if have.get(key) != TRUE:
        changes[key] = TRUE
    if mark != request.cause:
        changes[CORDONED_FOR] = f"{request.cause} since {times.write(now)}"
    return changes


def next_node_update(
    marks: WorkerMarks, worker: Worker, node: Node, request: DrainRequest | None, now: float
) -> DrainNode | UndrainNode | ResumeNode | None:
    """The next call to Slurm about this node; None when none is needed or allowed."""
    is_ours = drain_reason.is_own_reason(marks, node.reason)
    overwritten = resume.overwritten_drain_reason(marks, node, worker.comment)
    if overwritten is not None:
        why = EventReason(
            Event.DRAIN_RESTORED,
            f"Drained {node.name} again: it was drained before its pod was replaced",
        )
        return DrainNode(node.name, overwritten, override=True, why=why)
    if request is None:
        if "DOWN" in node.state:
            return resume.resume_action(marks, worker, node)
        if gres_change.settles_in(marks, node, now) is not None:
            return None
        # Before the new pod's slurmd is there, a job would be lost on it.
        if node.drain and is_ours and worker.is_registered:
            why = EventReason(Event.UNDRAINED, f"Undrained {node.name}: no drain request remains")
            return UndrainNode(node.name, why)
        return None
    if not node.drain:
        if drain_reason.is_foreign_reason(marks, node):
            # DOWN by somebody else: no job can land there. Only a pod that goes needs the drain.
            if not request.cause.deletes_pod:
                return None
            return DrainNode(node.name, request.reason, override=False, why=request.why)
        if "DOWN" in node.state and not is_ours and not request.cause.deletes_pod:
            return None
        return DrainNode(node.name, request.reason, override=True, why=request.why)
    if is_ours and node.reason != request.reason and _is_stale(marks, worker, node.reason, request):
        return DrainNode(node.name, request.reason, override=True, why=request.why)
    return None


def reason_to_send(marks: WorkerMarks, node: Node, action: DrainNode) -> str:
    """The reason to send, with the present record.

    The reason of somebody else is never replaced, also when it came after the decision.
    """
    if node.reason and (not action.override or drain_reason.is_foreign_reason(marks, node)):
        return node.reason
    return action.reason


def _is_stale(marks: WorkerMarks, worker: Worker, reason: str, request: DrainRequest) -> bool:
    """Whether a reason of ours shows another cause than the requested one."""
    if request.cause.deletes_pod and not request.user:
        return True
    passing = {drain_reason.terminating(marks), gres_change.reason(marks)}
    return reason in {*passing, *(words(marks, worker.pod) for words in DELETION_REASONS.values())}
