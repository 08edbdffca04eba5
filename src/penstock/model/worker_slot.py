"""Places for worker pods: an ordinal, or a Kubernetes node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class WorkerSlot:
    """What one pod and its Slurm node are called, and where it belongs.

    `ordinal` is None in DaemonSet mode. `node` is the one Kubernetes node that the pod may run
    on; empty when the scheduler chooses.
    """

    pod: str
    slurm_node: str
    ordinal: int | None = None
    node: str = ""


@dataclass(frozen=True, slots=True)
class NodePlacements:
    """Where a worker set in DaemonSet mode has pods.

    `slots` are in the order of the Kubernetes nodes, `slurm_nodes` the names of Slurm nodes by
    Kubernetes node, and `problems` the reason why a fitting Kubernetes node gets no pod. `last` are
    Kubernetes nodes whose pod stays while no other one would replace it.
    """

    slots: tuple[WorkerSlot, ...] = ()
    slurm_nodes: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    last: frozenset[str] = frozenset()
