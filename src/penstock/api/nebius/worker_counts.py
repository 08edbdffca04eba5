"""Counts of workers in a status: `status.workers`, which the original does not have."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from penstock.api.kubernetes.meta import KubeStruct
from penstock.api.kubernetes.schema import INT32, about


class WorkerCounts(KubeStruct, frozen=True, omit_defaults=False):
    """Pods and Slurm nodes of one set of workers. A count of zero is written, not left out."""

    desired: Annotated[int, about("Workers that there should be.", INT32)] = 0
    current: Annotated[int, about("Pods that are scheduled.", INT32)] = 0
    updated: Annotated[int, about("Pods of the current template.", INT32)] = 0
    ready: Annotated[int, about("Pods that are ready.", INT32)] = 0
    available: Annotated[int, about("Pods that are available.", INT32)] = 0
    unavailable: Annotated[int, about("Pods that are not available.", INT32)] = 0
    idle: Annotated[int, about("Slurm nodes that are idle.", INT32)] = 0
    allocated: Annotated[int, about("Slurm nodes with jobs.", INT32)] = 0
    down: Annotated[int, about("Slurm nodes that are down.", INT32)] = 0
    drained: Annotated[int, about("Slurm nodes that are drained or draining.", INT32)] = 0
    revision: Annotated[str, about("Hash of the template that pods should have.")] = ""
    template_of: Annotated[
        str, about("Versions of the objects whose fields are in the revision.")
    ] = ""
    kubernetes_nodes: Annotated[
        dict[str, str], about("Kubernetes node of each worker that returns to its own.")
    ] = field(default_factory=dict[str, str])
