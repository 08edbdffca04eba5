"""Whether PodDisruptionBudgets let a pod be evicted.

Source: Kubernetes API reference, PodDisruptionBudget v1, Eviction v1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

from penstock.api.meta import Json
from penstock.testing.apiserver.selectors import selects


def refusal(pod: Json, budgets: Iterable[Json], pods: Iterable[Json]) -> str | None:
    """Why the pod may not be evicted; None when it may."""
    mates = list(pods)
    for budget in budgets:
        spec: Json = budget["spec"]
        selector: Json = spec.get("selector", {})
        if not selects(selector, _labels(pod)):
            continue
        covered = [one for one in mates if selects(selector, _labels(one))]
        healthy = sum(_ready(one) for one in covered)
        if "minAvailable" in spec:
            wanted = _count(spec["minAvailable"], len(covered))
        else:
            wanted = len(covered) - _count(spec.get("maxUnavailable", 1), len(covered))
        if _ready(pod) and healthy - 1 < wanted:
            name = budget["metadata"]["name"]
            return f"Cannot evict pod as it would violate the pod's disruption budget {name}"
    return None


def _labels(pod: Json) -> dict[str, str]:
    return pod["metadata"].get("labels", {})


def _ready(pod: Json) -> bool:
    status: Json = pod.get("status", {})
    conditions = cast("list[Json]", status.get("conditions", []))
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _count(value: int | str, total: int) -> int:
    if isinstance(value, str):
        return math.ceil(total * int(value.rstrip("%")) / 100)
    return value
