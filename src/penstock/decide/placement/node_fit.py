"""Whether a Kubernetes node is one that a NodeSet in DaemonSet mode wants a pod on.

As of a DaemonSet: by `nodeSelector`, required node affinity and taints that the pod does not
tolerate. A taint `NoSchedule` keeps a new pod away and lets one that is there go on.
Source: Kubernetes documentation, "DaemonSet", "Assigning Pods to Nodes", "Taints and Tolerations".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from penstock.api.kubernetes.kinds import Node, NodeTerm, Requirement
from penstock.model.worker_set import Placement


class NodeFit(Enum):
    """Whether a Kubernetes node fits a NodeSet."""

    WANTED = "wanted"
    KEPT = "kept"
    """A pod that is there may go on, another does not come."""
    NOT = "not"


def evaluate(required: Placement, node: Node) -> NodeFit:
    """Evaluate one Kubernetes node."""
    labels = node.metadata.labels
    if required.labels and not required.labels.items() <= labels.items():
        return NodeFit.NOT
    if required.terms is not None and not any(_term(one, node) for one in required.terms):
        return NodeFit.NOT
    effects = {
        taint.effect
        for taint in node.spec.taints or ()
        if not any(one.tolerates(taint) for one in required.tolerated)
    }
    if "NoExecute" in effects:
        return NodeFit.NOT
    return NodeFit.KEPT if "NoSchedule" in effects else NodeFit.WANTED


def _term(term: NodeTerm, node: Node) -> bool:
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return False
    name = {"metadata.name": node.metadata.name}
    return all(_requirement(one, node.metadata.labels) for one in expressions) and all(
        _requirement(one, name) for one in fields
    )


def _requirement(wanted: Requirement, labels: Mapping[str, str]) -> bool:
    found, values = labels.get(wanted.key), wanted.values or ()
    match wanted.operator:
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt":
            return _compared(wanted.operator, found, values)
        case _:
            return False


def _compared(operator: str, found: str | None, values: Sequence[str]) -> bool:
    try:
        number, limit = int(found or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > limit if operator == "Gt" else number < limit
