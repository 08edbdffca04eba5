"""What to do about one worker: writes to its pod and its Slurm node, or its deletion."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.decide.action import (
    DeletePod,
    DeletionGround,
    DrainNode,
    EventReason,
    PatchPod,
    ResumeNode,
    SetNodeComment,
    SetNodeFeatures,
    SetNodeTopology,
    SetPodConditions,
    UndrainNode,
)
from penstock.decide.drain.request import cordon_changes, drain_request, next_node_update
from penstock.decide.observed.drain_reason import DrainCause
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.pod import deadline, labels
from penstock.decide.pod.conditions import conditions_action
from penstock.decide.slurm_node import features, gres_change, topology
from penstock.decide.slurm_node.records import comment_action


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """Actions about one worker; None for none.

    `wait` are seconds until it must be planned again although nothing that it depends on changes.
    """

    patch: PatchPod | None = None
    topology: SetNodeTopology | None = None
    comment: SetNodeComment | None = None
    features: SetNodeFeatures | None = None
    drain: DrainNode | None = None
    resume: UndrainNode | ResumeNode | None = None
    conditions: SetPodConditions | None = None
    delete: DeletePod | None = None
    wait: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do or to wait for."""
        return self == _NOTHING


_NOTHING = WorkerPlan()


def plan_worker(
    view: WorkerSetView,
    worker: Worker,
    deletion: DrainCause | None = None,
    *,
    while_idle: bool = False,
) -> WorkerPlan:
    """All actions about a pod that stays for now.

    `deletion` is the cause for which it is to be deleted. With `while_idle` its node is drained
    only while it is idle.
    """
    workers, marks, now = view.workers, view.workers.marks, view.now
    request = drain_request(marks, worker, deletion, view.propagated_conditions)
    cordon = cordon_changes(marks, worker, request, now)
    annotations = {
        **cordon,
        **deadline.changes(marks, worker),
        **topology.annotation(marks, worker),
    }
    changed = labels.changes(workers, worker)
    patch = None
    if annotations or changed:
        why = request.why if request and cordon else None
        meta = worker.pod.metadata
        version = meta.resource_version if cordon else ""
        patch = PatchPod(meta.name, meta.uid, changed, annotations, why, version)
    conditions = conditions_action(marks, worker, now)
    node = worker.node
    if node is None or not worker.is_slurm_known or worker.shares_slurm_node:
        return WorkerPlan(patch=patch, conditions=conditions)
    wait, update = None, None
    if not cordon:
        # The pod's mark shows whose cordon it is, before Slurm gets the drain: in whatever order
        # things fail, a user's cordon is never taken for ours, nor ours for a user's.
        wait = gres_change.settles_in(marks, node, now) if request is None else None
        update = next_node_update(marks, worker, node, request, now)
    drain = resume = None
    if isinstance(update, DrainNode):
        drain = replace(update, while_idle=while_idle)
    else:
        resume = update
    stays = deletion is None
    return WorkerPlan(
        patch=patch,
        topology=topology.step(marks, worker, view.rejected_topologies, now) if stays else None,
        comment=_comment(view, worker, going=not stays),
        features=features.step(marks, worker) if stays else None,
        drain=drain,
        resume=resume,
        conditions=conditions,
        wait=wait,
    )


def plan_deletion(
    view: WorkerSetView, worker: Worker, ground: DeletionGround, why: EventReason
) -> WorkerPlan:
    """Delete a pod. Nothing else is written to it, or its resourceVersion would be another."""
    meta = worker.pod.metadata
    is_known = worker.node is not None and worker.is_slurm_known
    return WorkerPlan(
        comment=_comment(view, worker, going=True) if is_known else None,
        delete=DeletePod(
            meta.name, meta.uid, meta.resource_version, worker.slurm_node, ground, why
        ),
    )


def _comment(view: WorkerSetView, worker: Worker, *, going: bool) -> SetNodeComment | None:
    return comment_action(
        view.workers, worker, going=going, parameters_by_revision=view.revisions.parameters
    )
