"""From the counts in a status to the model, and back."""

from __future__ import annotations

from penstock.api.kubernetes.meta import Condition
from penstock.api.nebius.worker_counts import WorkerCounts
from penstock.model.worker_status import WorkerSetStatus


def last_status(
    counts: WorkerCounts | None,
    *,
    generation: int,
    selector: str,
    conditions: tuple[Condition, ...],
) -> WorkerSetStatus:
    """The status of a worker set as last written."""
    found = counts or WorkerCounts()
    return WorkerSetStatus(
        observed_generation=generation,
        replicas=found.current,
        updated_replicas=found.updated,
        ready_replicas=found.ready,
        available_replicas=found.available,
        unavailable_replicas=found.unavailable,
        desired=found.desired,
        slurm_idle=found.idle,
        slurm_allocated=found.allocated,
        slurm_down=found.down,
        slurm_drain=found.drained,
        revision=found.revision,
        selector=selector,
        ordinal_to_node=found.kubernetes_nodes,
        conditions=conditions,
    )


def worker_counts(status: WorkerSetStatus) -> WorkerCounts:
    """The counts that a status shows."""
    return WorkerCounts(
        desired=status.desired,
        current=status.replicas,
        updated=status.updated_replicas,
        ready=status.ready_replicas,
        available=status.available_replicas,
        unavailable=status.unavailable_replicas,
        idle=status.slurm_idle,
        allocated=status.slurm_allocated,
        down=status.slurm_down,
        drained=status.slurm_drain,
        revision=status.revision,
        kubernetes_nodes=dict(status.ordinal_to_node),
    )
