"""The finalizer that holds a deleted NodeSet until its pods are drained and gone."""

from __future__ import annotations

from penstock.api.cluster.marks import DRAIN_FINALIZER
from penstock.base import times
from penstock.decide.action import AddFinalizer, EventReason, RemoveFinalizer
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import DELETED_PATIENCE_S, WorkerSetView
from penstock.decide.slurm_node.records import OrphanedRecords
from penstock.slurm.known import Unknown

GOING_S = 60.0
"""The same for a NodeSet that goes with its whole cluster, of an external slurmctld: slurmrestd
ends at the same time, and a namespace is waited for by somebody."""


def finalizer_action(
    view: WorkerSetView, slurm: SlurmSnapshot, defunct: OrphanedRecords, *, claimed: bool
) -> AddFinalizer | RemoveFinalizer | None:
    """Add it while the NodeSet lives; remove it when nothing of the NodeSet is left.

    `claimed` says that it would take claims along that shall stay.
    """
    has = DRAIN_FINALIZER in view.workers.metadata.finalizers
    if not view.deleting:
        return None if has else AddFinalizer(DRAIN_FINALIZER)
    if not has or view.pods or claimed:
        return None
    if view.is_orphaned:
        cluster = view.workers.wording.cluster_kind
        return _remove(view, f"All pods are gone, and so is the {cluster}")
    if isinstance(slurm.nodes, Unknown):
        if (patience_in(view) or 0) > 0:
            return None
        return _remove(view, f"All pods are gone; Slurm may keep their records: {slurm.nodes.why}")
    if defunct.left:
        return None
    return _remove(view, "All pods and their Slurm node records are gone")


def patience_in(view: WorkerSetView) -> float | None:
    """Seconds until a silent Slurm is waited for no longer, None while pods are left."""
    deleted = times.parse(view.workers.metadata.deletion_timestamp)
    if deleted is None or view.pods or DRAIN_FINALIZER not in view.workers.metadata.finalizers:
        return None
    return max(
        0.0, deleted + (GOING_S if view.is_deleted_with_cluster else DELETED_PATIENCE_S) - view.now
    )


def _remove(view: WorkerSetView, message: str) -> RemoveFinalizer:
    reason = f"{view.workers.kind}Drained"
    return RemoveFinalizer(DRAIN_FINALIZER, EventReason(reason, message))
