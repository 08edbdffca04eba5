"""Which workers leave a Kubernetes node that is out of service, once their Slurm node is drained.

A pod that tolerates the cordon would be created there again, so it stays: the node then waits.
"""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.kinds import Taint
from penstock.decide.observed.worker import Worker
from penstock.model import node_mark
from penstock.model.worker_set import Placement

_CORDON: Final = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
"""Source: Kubernetes documentation, "Taints and Tolerations"."""


def is_evicted(placement: Placement | None, worker: Worker) -> bool:
    """Whether a worker is to leave its Kubernetes node."""
    node = worker.kubernetes_node
    if node is None or not node.spec.unschedulable or worker.is_per_node:
        return False
    if node_mark.read(node.metadata.annotations) is None:
        return False
    return placement is None or not any(one.tolerates(_CORDON) for one in placement.tolerated)
