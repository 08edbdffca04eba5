"""From the counts in a status to the model, and back."""

from __future__ import annotations

from penstock.api.kubernetes.meta import Condition, ObjectMeta
from penstock.api.nebius.worker_counts import WorkerCounts
from penstock.model.worker_status import WorkerSetStatus


def last_status(
    counts: WorkerCounts | None,
    *,
    generation: int,
    selector: str,
    conditions: tuple[Condition, ...],
    template_of: str,
) -> WorkerSetStatus:
    """The status of a worker set as last written; `template_of` are the `versions` of now."""
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
        is_revision_of_spec=found.template_of == template_of,
        selector=selector,
        ordinal_to_node=found.kubernetes_nodes,
        conditions=conditions,
    )


def versions(*declared_by: ObjectMeta | None) -> str:
    """Identity and generation of each object that exists."""
    return ",".join(f"{one.uid}:{one.generation}" for one in declared_by if one is not None)


def worker_counts(status: WorkerSetStatus, template_of: str) -> WorkerCounts:
    """The counts that a status shows; `template_of` are the `versions` of its revision."""
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
        template_of=template_of,
        kubernetes_nodes=dict(status.ordinal_to_node),
    )
