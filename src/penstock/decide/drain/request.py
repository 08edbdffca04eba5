"""Who wants a node drained, and the one step that brings Slurm there.

The pod is condemned (by scale-in, by an update or by the deletion of its NodeSet), a user cordoned
the pod (either spelling of pod-cordon), or the Kubernetes node is unschedulable. Where
Penstock itself sets pod-cordon it adds the annotation `cordoned-for` with the cause and the time;
a pod-cordon without that mark is the user's and is never removed. When it takes its cordon back the
mark says `nobody`: from then on whatever cordons the pod is known to be a user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.decide.action import DrainNode, EventReason, ResumeNode, UndrainNode
from penstock.decide.drain import resume
from penstock.decide.observed import drain_reason, node_comment
from penstock.decide.slurm_node import gres_change as gres_settle
from penstock.model.worker_marks import TRUE, WorkerMarks
from penstock.slurm.state import Node


class DrainCause(StrEnum):
    """Why a node shall be drained."""

    SCALE_IN = "scale-in"
    DELETION = "deletion"
    UPDATE = "update"
    POD = "pod-cordon"
    NODE = "node-cordon"

    @property
    def deletes_pod(self) -> bool:
        """Whether the pod shall go once its node is drained."""
        return self in DELETING_CAUSES


DELETING_CAUSES = {
    DrainCause.SCALE_IN: drain_reason.scale_in,
    DrainCause.DELETION: drain_reason.deletion,
    DrainCause.UPDATE: drain_reason.update,
}
"""The causes for which a pod goes, and the words for them."""
RELEASED = "nobody"
REASONS = {
    DrainCause.SCALE_IN: "ScaleIn",
    DrainCause.UPDATE: "RollingUpdate",
    DrainCause.POD: "PodCordon",
    DrainCause.NODE: "NodeCordon",
}


def event_reason(marks: WorkerMarks, cause: DrainCause) -> str:
    """The reason of events about pods that go, or nodes that are drained, for this cause."""
    return f"{marks.kind}Deletion" if cause is DrainCause.DELETION else REASONS[cause]


@dataclass(frozen=True, slots=True)
class DrainRequest:
    """Why a node shall be drained, and the reason to give to Slurm."""

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


def is_cordoned_by_operator(marks: WorkerMarks, pod: Pod, node: Node | None) -> bool:
    """Whether the pod's pod-cordon was set by an operator, not by a user.

    By our mark, or, on a pod that slurm-operator left to us, by a drain reason that only an
    operator's own cordon leads to.
    """
    annotations = pod.metadata.annotations
    if CORDONED_FOR in annotations:
        return _marked_cause(pod) is not None
    inherited = {
        drain_reason.plain_node_cordon(marks, pod),
        *(told(marks, pod) for told in DELETING_CAUSES.values()),
    }
    return (
        annotations.get(marks.cordon[0]) == TRUE
        and node is not None
        and node.drain
        and node.reason in inherited
    )


def is_cordoned_by_user(marks: WorkerMarks, pod: Pod, node: Node | None) -> bool:
    """Whether a user cordoned the pod; any key but the first is always a user's."""
    annotations = pod.metadata.annotations
    own, *others = marks.cordon
    if any(annotations.get(key) == TRUE for key in others):
        return True
    return annotations.get(own) == TRUE and not is_cordoned_by_operator(marks, pod, node)


def drain_request(
    marks: WorkerMarks,
    pod: Pod,
    node: Node | None,
    machine: KubernetesNode | None,
    condemned: DrainCause | None,
    propagated: Sequence[str] = (),
) -> DrainRequest | None:
    """What shall be; None when nobody wants the node drained.

    The words of a user's own cordon go before the others, as that is the wish that is still there
    when the others are gone.
    """
    user = is_cordoned_by_user(marks, pod, node)
    cordoned = machine if machine is not None and machine.spec.unschedulable else None
    cause = condemned or (DrainCause.NODE if cordoned else DrainCause.POD if user else None)
    if cause is None:
        return None
    if user or (cordoned is None and not cause.deletes_pod):
        reason = drain_reason.pod_cordon(marks, pod)
    elif cordoned is None or cause.deletes_pod:
        reason = DELETING_CAUSES[cause](marks, pod)
    else:
        reason = drain_reason.node_cordon(marks, pod, cordoned, propagated)
    return DrainRequest(cause, reason, user, marks)


def cordon_changes(
    marks: WorkerMarks, pod: Pod, node: Node | None, wanted: DrainRequest | None, now: float
) -> dict[str, str | None]:
    """What must change at the pod's annotations so that they tell the wish, and whose it is."""
    have: Mapping[str, str] = pod.metadata.annotations
    key = marks.cordon[0]
    mark = _marked_cause(pod)
    if wanted is None or wanted.cause is DrainCause.POD:
        if mark is None and not is_cordoned_by_operator(marks, pod, node):
            return {}
        return {key: None, CORDONED_FOR: RELEASED}
    if mark is None and have.get(key) == TRUE and wanted.user:
        return {}
    changes: dict[str, str | None] = {}
    if have.get(key) != TRUE:
        changes[key] = TRUE
    if mark != wanted.cause:
        changes[CORDONED_FOR] = f"{wanted.cause} since {times.write(now)}"
    return changes


def deletion_requested_at(pod: Pod) -> str | None:
    """Since when the pod is to go, as its mark says."""
    cause, _, since = pod.metadata.annotations.get(CORDONED_FOR, "").partition(" since ")
    return since if since and cause in DELETING_CAUSES else None


def is_marked_for_update(pod: Pod) -> bool:
    """Whether its mark says that an update takes it."""
    return _marked_cause(pod) == DrainCause.UPDATE


def next_node_update(
    marks: WorkerMarks, pod: Pod, node: Node, wanted: DrainRequest | None, now: float
) -> DrainNode | UndrainNode | ResumeNode | None:
    """The next call to Slurm about this node; None when it is as wanted or not ours to change."""
    ours = drain_reason.is_own_reason(marks, node.reason)
    forgotten = resume.overwritten_drain_reason(marks, node, node_comment.read(node.comment))
    if forgotten is not None:
        why = EventReason(
            "DrainRestored", f"Node {node.name} was drained before its pod was replaced"
        )
        return DrainNode(node.name, forgotten, override=True, why=why)
    if wanted is None:
        if "DOWN" in node.state:
            return resume.resume_action(marks, pod, node)
        if gres_settle.settles_in(marks, node, now) is not None:
            return None
        # Before the new pod's slurmd is there, a job would be lost on it.
        if node.drain and ours and resume.is_registered(pod, node):
            why = EventReason("Undrained", f"Nobody wants node {node.name} drained any more")
            return UndrainNode(node.name, why)
        return None
    if not node.drain:
        if drain_reason.is_foreign_reason(marks, node):
            # DOWN by somebody else: no job can land there. Only a pod that goes needs the drain.
            if not wanted.cause.deletes_pod:
                return None
            return DrainNode(node.name, wanted.reason, override=False, why=wanted.why)
        if "DOWN" in node.state and not ours and not wanted.cause.deletes_pod:
            return None
        return DrainNode(node.name, wanted.reason, override=True, why=wanted.why)
    if ours and node.reason != wanted.reason and _is_stale(marks, pod, node.reason, wanted):
        return DrainNode(node.name, wanted.reason, override=True, why=wanted.why)
    return None


def reason_to_send(marks: WorkerMarks, node: Node, action: DrainNode) -> str:
    """The reason to put into the call, looking at the record as it is now.

    Somebody else's words are never replaced, also when they came after the decision.
    """
    if node.reason and (not action.override or drain_reason.is_foreign_reason(marks, node)):
        return node.reason
    return action.reason


def _marked_cause(pod: Pod) -> str | None:
    """The cause for which Penstock cordons the pod, by its mark; None when it does not."""
    cause = pod.metadata.annotations.get(CORDONED_FOR, RELEASED).partition(" ")[0]
    return None if cause == RELEASED else cause


def _is_stale(marks: WorkerMarks, pod: Pod, reason: str, wanted: DrainRequest) -> bool:
    """Whether a reason of ours tells another cause than the wanted one."""
    if wanted.cause.deletes_pod and not wanted.user:
        return True
    passing = {drain_reason.terminating(marks), gres_settle.reason(marks)}
    return reason in {*passing, *(told(marks, pod) for told in DELETING_CAUSES.values())}
