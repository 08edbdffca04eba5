"""Condition of pods with hostNetwork, whose ports are open at the Kubernetes node's addresses.

Source: Kubernetes documentation, "Pod Security Standards" (Host Namespaces, Host Ports).
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.meta import Condition, Json
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.pods import PodReason

EXPOSED = ConditionType.HOST_NETWORK_EXPOSED
"""The condition's type."""


def findings(pod: Json, listens: str, before: Iterable[Condition]) -> list[Finding]:
    """Return the condition while the pod spec has hostNetwork, and its end after that.

    `listens` names the daemons and their ports; `before` are the object's conditions.
    """
    if pod.get("hostNetwork"):
        message = (
            f"hostNetwork: {listens} at the Kubernetes node's addresses, where NetworkPolicies do "
            "not apply. Restrict connections with a firewall; one such pod fits on a Kubernetes "
            "node"
        )
        return [Finding(True, PodReason.HOST_NETWORK, message, type=EXPOSED)]
    if find(before, EXPOSED) is None:
        return []
    return [Finding(True, PodReason.POD_NETWORK, type=EXPOSED, inverted=True)]
