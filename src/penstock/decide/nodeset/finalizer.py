"""The finalizer that holds a deleted NodeSet until its pods are drained and gone."""

from __future__ import annotations

from penstock.api.cluster.marks import DRAIN_FINALIZER
from penstock.catalog.event import drained
from penstock.decide.action import AddFinalizer, EventReason, RemoveFinalizer
from penstock.decide.observed.deletion import Deletion
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.slurm_node.records import OrphanedRecords
from penstock.slurm.known import Unknown


def finalizer_action(
    view: WorkerSetView, deletion: Deletion, orphaned: OrphanedRecords, *, has_foreign_pvcs: bool
) -> AddFinalizer | RemoveFinalizer | None:
    """Add it while the NodeSet lives; remove it when nothing of the NodeSet is left.

    `has_foreign_pvcs`: with its deletion PVCs would go that have to stay.
    """
    has = DRAIN_FINALIZER in view.workers.metadata.finalizers
    if not view.deleting:
        return None if has else AddFinalizer(DRAIN_FINALIZER)
    if not has or view.pods or has_foreign_pvcs:
        return None
    if deletion.is_orphaned:
        cluster = view.workers.wording.cluster_kind
        return _remove(view, f"All pods are gone, and so is the {cluster}")
    if isinstance(view.nodes, Unknown):
        if (deletion.records_patience or 0) > 0:
            return None
        if view.workers.is_of_cluster:
            return _remove(view, "All pods are gone, and its slurmctld does not answer")
        return _remove(view, f"All pods are gone; Slurm may keep their records: {view.nodes.why}")
    if orphaned.left:
        return None
    return _remove(view, "All pods and their Slurm node records are gone")


def _remove(view: WorkerSetView, message: str) -> RemoveFinalizer:
    reason = drained(view.workers.kind)
    return RemoveFinalizer(DRAIN_FINALIZER, EventReason(reason, message))
