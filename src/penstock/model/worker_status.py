"""Status of a worker set, as it is counted for each API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.api.cluster.external_slurm import ExternalSlurm
from penstock.api.kubernetes.meta import Condition


@dataclass(frozen=True, slots=True)
class WorkerSetStatus:
    """Counts of pods and Slurm nodes, and what the next decision needs of this one.

    `replicas` are pods that the scheduler or a kubelet reported on, `revision` the hash that pods
    should have. `is_revision_of_spec` is whether it was computed from the present version of all
    that declares the template. `ordinal_to_node` is the Kubernetes node of each ordinal where pods
    are pinned.
    """

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    desired: int = 0
    slurm_idle: int = 0
    slurm_allocated: int = 0
    slurm_down: int = 0
    slurm_drain: int = 0
    revision: str = ""
    is_revision_of_spec: bool = True
    selector: str = ""
    ordinal_to_node: Mapping[str, str] = field(default_factory=dict[str, str])
    external: ExternalSlurm | None = None
    conditions: tuple[Condition, ...] = ()
