"""The one Kubernetes node that a pod may run on."""

from __future__ import annotations

from penstock.api.kubernetes.meta import Json


def pin_to_node(spec: Json, kubernetes_node: str) -> None:
    """Have the scheduler put a pod on that Kubernetes node, and on no other.

    What the template asks of nodes is looked at before; here it would be asked besides. Source:
    Kubernetes documentation, "DaemonSet", "How Daemon Pods are scheduled".
    """
    term: Json = {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": [kubernetes_node]}]
    }
    affinity: Json = spec.get("affinity") or {}
    node: Json = affinity.get("nodeAffinity") or {}
    node = {
        **node,
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
    }
    spec["affinity"] = {**affinity, "nodeAffinity": node}
