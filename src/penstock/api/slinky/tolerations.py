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
"""Of all workers: machines that are meant for them."""


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
"""Of workers in DaemonSet mode: they belong to their machine, also while it is cordoned.

Source: Kubernetes documentation, "DaemonSet", "Taints and tolerations"; slurm-operator issue 259.
"""
HOST_NETWORK: Final[Json] = _any("network-unavailable", "NoSchedule")
"""Of those in the host's network besides."""
