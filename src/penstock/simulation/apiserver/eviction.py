"""Whether PodDisruptionBudgets let a pod be evicted.

Source: Kubernetes API reference, PodDisruptionBudget v1, Eviction v1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import cast

from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver.selectors import selects

Scale = Callable[[Json, str], int | None]


def rejection(pod: Json, budgets: Iterable[Json], pods: Iterable[Json], scale: Scale) -> str | None:
    """Why the pod may not be evicted; None when it may.

    `scale` returns the desired number of pods of a controller, None if it is unknown. What may be
    unavailable is counted from that number, not from the present pods.
    """
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
            expected = _expected(covered, scale)
            wanted = expected - _count(spec.get("maxUnavailable", 1), expected)
        if _ready(pod) and healthy - 1 < wanted:
            name = budget["metadata"]["name"]
            return f"Cannot evict pod as it would violate the pod's disruption budget {name}"
    return None


def _expected(pods: Iterable[Json], scale: Scale) -> int:
    """As of the disruption controller: the scales of all controllers that the pods have."""
    found: dict[str, int] = {}
    for pod in pods:
        owners: list[Json] = pod["metadata"].get("ownerReferences", [])
        owner = next((one for one in owners if one.get("controller")), None)
        number = scale(owner, pod["metadata"]["namespace"]) if owner is not None else None
        key = owner["uid"] if owner is not None and number is not None else pod["metadata"]["uid"]
        found[key] = 1 if number is None else number
    return sum(found.values())


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
