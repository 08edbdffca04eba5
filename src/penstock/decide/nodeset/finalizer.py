"""The finalizer that holds a deleted NodeSet until its pods are drained and gone."""

from __future__ import annotations

from penstock.api.cluster.marks import DRAIN_FINALIZER
from penstock.base import times
from penstock.decide.action import AddFinalizer, EventReason, RemoveFinalizer
from penstock.decide.observed.deletion import DELETED_PATIENCE_S, deletion_of
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.slurm_node.records import OrphanedRecords
from penstock.slurm.known import Unknown

GOING_S = 60.0
"""The same for a NodeSet that goes with its whole cluster, of an external slurmctld: slurmrestd
ends at the same time, and a namespace is waited for by somebody."""


def finalizer_action(
    view: WorkerSetView, orphaned: OrphanedRecords, *, has_foreign_pvcs: bool
) -> AddFinalizer | RemoveFinalizer | None:
    """Add it while the NodeSet lives; remove it when nothing of the NodeSet is left.

    `has_foreign_pvcs`: with its deletion PVCs would go that have to stay.
    """
    has = DRAIN_FINALIZER in view.workers.metadata.finalizers
    if not view.deleting:
        return None if has else AddFinalizer(DRAIN_FINALIZER)
    if not has or view.pods or has_foreign_pvcs:
        return None
    if deletion_of(view).is_orphaned:
        cluster = view.workers.wording.cluster_kind
        return _remove(view, f"All pods are gone, and so is the {cluster}")
    if isinstance(view.nodes, Unknown):
        if (patience_in(view) or 0) > 0:
            return None
        return _remove(view, f"All pods are gone; Slurm may keep their records: {view.nodes.why}")
    if orphaned.left:
        return None
    return _remove(view, "All pods and their Slurm node records are gone")


def patience_in(view: WorkerSetView) -> float | None:
    """Seconds until a silent Slurm is waited for no longer, None while pods are left."""
    deleted = times.parse(view.workers.metadata.deletion_timestamp)
    if deleted is None or view.pods or DRAIN_FINALIZER not in view.workers.metadata.finalizers:
        return None
    patience = GOING_S if deletion_of(view).is_with_cluster else DELETED_PATIENCE_S
    return max(0.0, deleted + patience - view.now)


def _remove(view: WorkerSetView, message: str) -> RemoveFinalizer:
    reason = f"{view.workers.kind}Drained"
    return RemoveFinalizer(DRAIN_FINALIZER, EventReason(reason, message))
