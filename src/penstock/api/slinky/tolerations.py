"""Taints of Kubernetes Nodes that worker pods do not mind."""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.labels import WORKER_TAINT

WORKER: Final[Json] = {
    "key": WORKER_TAINT,
    "operator": "Equal",
    "value": "",
    "effect": "NoExecute",
}
"""Toleration of all workers: Kubernetes nodes that are reserved for them."""


def _any(key: str, effect: str) -> Json:
    return {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}


DAEMON: Final[tuple[Json, ...]] = (
    _any("not-ready", "NoExecute"),
    _any("unreachable", "NoExecute"),
    _any("disk-pressure", "NoSchedule"),
    _any("memory-pressure", "NoSchedule"),
    _any("pid-pressure", "NoSchedule"),
    _any("unschedulable", "NoSchedule"),
)
"""Tolerations of workers in DaemonSet mode: their Kubernetes node keeps them while cordoned.

Source: Kubernetes documentation, "DaemonSet", "Taints and tolerations"; slurm-operator issue 259.
"""
HOST_NETWORK: Final[Json] = _any("network-unavailable", "NoSchedule")
"""Further toleration of workers with `hostNetwork`."""
