"""Causes of drains, the reasons that Slurm shows for them, and whose a reason is.

Everybody may drain a Slurm node: administrators, health checks, slurmctld itself. A reason that
begins with our prefix is ours; any other drain, also one without a reason, is not ours and stays.
The texts are slurm-operator's, so that each operator recognizes the drains of the other.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.kinds import Pod
from penstock.model import node_mark
from penstock.model.worker_marks import WorkerMarks
from penstock.slurm.state import Node

NOT_RESPONDING = "Not responding"
"""What slurmctld itself writes when it sets a silent node DOWN. It is nobody's decision."""
LONGEST = 256
"""Characters that are kept of an administrator's reason."""


class DrainCause(StrEnum):
    """Why a Slurm node has to be drained."""

    SCALE_IN = "scale-in"
    DELETION = "deletion"
    UPDATE = "update"
    POD = "pod-cordon"
    NODE = "node-cordon"

    @property
    def deletes_pod(self) -> bool:
        """Whether the pod is deleted once its node is drained."""
        return self in DELETION_REASONS


def terminating(marks: WorkerMarks) -> str:
    """What the preStop hook of worker pods writes, with state DOWN."""
    return f"{marks.drain_prefix}Pod is terminating"


def is_own_reason(marks: WorkerMarks, reason: str) -> bool:
    """Whether a reason carries the operator's mark."""
    return reason.startswith(marks.drain_prefix)


def is_foreign_reason(marks: WorkerMarks, node: Node) -> bool:
    """Whether the node's reason is somebody else's word about its state, so not to be reworded."""
    if node.drain:
        return not is_own_reason(marks, node.reason)
    meant = node.state & {"DOWN", "FAIL", "ERROR"}
    return (
        bool(meant and node.reason)
        and not is_own_reason(marks, node.reason)
        and not node.reason.startswith(NOT_RESPONDING)
    )


def scale_in(marks: WorkerMarks, pod: Pod) -> str:
    """The pod goes because fewer are wanted."""
    return f"{marks.drain_prefix}Pod ({pod.metadata.key}) is pending termination for scale-in"


def deletion(marks: WorkerMarks, pod: Pod) -> str:
    """The pod goes because its worker set does."""
    pending = f"Pod ({pod.metadata.key}) is pending termination"
    return f"{marks.drain_prefix}{pending} for {marks.kind} deletion"


def update(marks: WorkerMarks, pod: Pod) -> str:
    """The pod goes because one of a newer template takes its place."""
    return f"{marks.drain_prefix}Pod ({pod.metadata.key}) is pending termination for update"


DELETION_REASONS: Final[Mapping[DrainCause, Callable[[WorkerMarks, Pod], str]]] = {
    DrainCause.SCALE_IN: scale_in,
    DrainCause.DELETION: deletion,
    DrainCause.UPDATE: update,
}
"""Reasons of the causes for which a pod is deleted."""


def pod_cordon(marks: WorkerMarks, pod: Pod) -> str:
    """A user cordoned the pod."""
    return f"{marks.drain_prefix}Pod ({pod.metadata.key}) was cordoned"


def node_cordon(
    marks: WorkerMarks, pod: Pod, node: KubernetesNode, propagated: Sequence[str] = ()
) -> str:
    """The Kubernetes node was cordoned: words of its annotation, conditions or mark, if any."""
    words = _clean(node.metadata.annotations.get(marks.cordon_reason, ""))
    if not words:
        words = "; ".join(
            f"({c.reason or c.type}: {_clean(c.message or '')})"
            for c in node.status.conditions or ()
            if c.type in propagated and c.status == "True"
        )
    if not words and (mark := node_mark.read(node.metadata.annotations)) is not None:
        words = mark.purpose.reason
    return f"{marks.drain_prefix}{words}" if words else plain_node_cordon(marks, pod)


def plain_node_cordon(marks: WorkerMarks, pod: Pod) -> str:
    """The Kubernetes node was cordoned without a reason."""
    return (
        f"{marks.drain_prefix}Node ({pod.spec.node_name}) was cordoned, "
        f"Pod ({pod.metadata.key}) must be cordoned"
    )


def _clean(text: str) -> str:
    blank = text.replace("\t", " ").replace("\n", " ")
    kept = "".join(c for c in blank if unicodedata.category(c) != "Cc")
    return kept.strip()[:LONGEST]
