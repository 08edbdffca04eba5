"""Where a simulated scheduler may put a pod."""

from __future__ import annotations

import msgspec

from penstock.api.kubernetes.kinds import Taint
from penstock.api.kubernetes.meta import Json
from penstock.model.worker_set import Toleration


def takes(kubernetes_node: Json, pod: Json) -> bool:
    """Whether a scheduler may bind a pod to a node, by its name, labels, taints and cordon."""
    spec, meta = kubernetes_node.get("spec", {}), kubernetes_node["metadata"]
    affinity: Json = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required: Json = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms: list[Json] = required.get("nodeSelectorTerms", [])
    if terms and not any(_fits(meta, term) for term in terms):
        return False
    if not pod["spec"].get("nodeSelector", {}).items() <= meta.get("labels", {}).items():
        return False
    taints: list[Json] = [*(spec.get("taints") or ())]
    if spec.get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    tolerated = msgspec.convert(pod["spec"].get("tolerations", ()), tuple[Toleration, ...])
    return all(
        any(one.tolerates(taint) for one in tolerated)
        for taint in msgspec.convert(taints, tuple[Taint, ...])
    )


def _fits(meta: Json, term: Json) -> bool:
    """Whether a node has the name and the labels of a term, as far as operators are In."""
    labels: dict[str, str] = meta.get("labels", {})
    fields, expressions = term.get("matchFields") or (), term.get("matchExpressions") or ()
    return all(meta["name"] in one["values"] for one in fields) and all(
        labels.get(one["key"]) in one["values"] for one in expressions
    )
