"""The PodDisruptionBudget that keeps pods with jobs from being evicted."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.meta import Json
from penstock.render.parts.pod_template import object_metadata

MORE_THAN_ALL = 2**31 - 1
"""Healthy pods that a PodDisruptionBudget can ask for at most."""


def disruption_budget(
    name: str,
    namespace: str,
    selector: Mapping[str, str],
    *owners: Json,
    counted: bool,
    labels: Mapping[str, str] | None = None,
) -> Json:
    """A budget that forbids each eviction of a pod with the labels of `selector`.

    `counted`: owners of the pods have `spec.replicas`, which Kubernetes takes for the number of
    pods that there should be. For others a number is required that is never reached. Source:
    Kubernetes documentation, "Specifying a Disruption Budget".
    """
    most: Json = {"maxUnavailable": 0} if counted else {"minAvailable": MORE_THAN_ALL}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": object_metadata(name, namespace, dict(labels or {}), *owners),
        "spec": {**most, "selector": {"matchLabels": dict(selector)}},
    }
