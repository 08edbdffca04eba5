"""Whether a Kubernetes node is one that a NodeSet in DaemonSet mode wants a pod on.

As of a DaemonSet: by `nodeSelector`, required node affinity and taints that the pod does not
tolerate. A taint `NoSchedule` keeps a new pod away and lets one that is there go on.
Source: Kubernetes documentation, "DaemonSet", "Assigning Pods to Nodes", "Taints and Tolerations".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from penstock.api.kubernetes.kinds import Node, NodeTerm, NodeTerms, Requirement, Taint
from penstock.api.kubernetes.meta import Json, KubeStruct
from penstock.api.slinky import tolerations
from penstock.api.slinky.nodeset import NodeSet


class Fit(Enum):
    """What a machine is for a NodeSet."""

    WANTED = "wanted"
    KEPT = "kept"
    """A pod that is there may go on, another does not come."""
    NOT = "not"


class Toleration(KubeStruct, frozen=True):
    """A taint that a pod does not mind; what is empty stands for anything."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None

    def holds(self, taint: Taint) -> bool:
        """Whether it is about that taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.operator == "Exists":
            return not self.key or self.key == taint.key
        equal = self.operator in (None, "", "Equal")
        return equal and self.key == taint.key and (self.value or "") == (taint.value or "")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a template asks of a machine; `terms` is None when any affinity will do."""

    labels: Mapping[str, str]
    terms: tuple[NodeTerm, ...] | None
    tolerated: tuple[Toleration, ...]


def wishes(nodeset: NodeSet) -> Wishes | None:
    """What a NodeSet's template asks; None when it is written wrong, which its check tells."""
    spec = nodeset.spec.template.spec
    affinity: Json = spec.get("affinity") or {}
    nodes: Json = affinity.get("nodeAffinity") or {}
    required: Any = nodes.get("requiredDuringSchedulingIgnoredDuringExecution")
    tolerated = [tolerations.WORKER, *tolerations.DAEMON]
    if spec.get("hostNetwork"):
        tolerated.append(tolerations.HOST_NETWORK)
    try:
        terms = msgspec.convert(required, NodeTerms | None)
        return Wishes(
            msgspec.convert(spec.get("nodeSelector") or {}, dict[str, str]),
            (terms.node_selector_terms or ()) if terms is not None else None,
            msgspec.convert([*tolerated, *(spec.get("tolerations") or ())], tuple[Toleration, ...]),
        )
    except msgspec.ValidationError:
        return None


def fit(wished: Wishes, machine: Node) -> Fit:
    """Judge one machine."""
    labels = machine.metadata.labels
    if wished.labels and not wished.labels.items() <= labels.items():
        return Fit.NOT
    if wished.terms is not None and not any(_term(one, machine) for one in wished.terms):
        return Fit.NOT
    effects = {
        taint.effect
        for taint in machine.spec.taints or ()
        if not any(one.holds(taint) for one in wished.tolerated)
    }
    if "NoExecute" in effects:
        return Fit.NOT
    return Fit.KEPT if "NoSchedule" in effects else Fit.WANTED


def _term(term: NodeTerm, machine: Node) -> bool:
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return False
    name = {"metadata.name": machine.metadata.name}
    return all(_requirement(one, machine.metadata.labels) for one in expressions) and all(
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
