"""What to do about each worker: writes to its pod and its Slurm node, or its deletion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.decide.action import (
    DeletePod,
    DrainNode,
    PatchPod,
    PowerDownNode,
    ResumeNode,
    SetNodeComment,
    SetNodeFeatures,
    SetNodeTopology,
    SetPodConditions,
    UndrainNode,
)
from penstock.decide.drain.request import cordon_changes, drain_request, next_node_update
from penstock.decide.nodeset import power_saving
from penstock.decide.nodeset.worker_steps import DeleteWorker, KeepWorker, WorkerStep
from penstock.decide.observed.drain_reason import DrainCause
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.plan_cache import PlanCache
from penstock.decide.pod import deadline, labels
from penstock.decide.pod.conditions import conditions_action
from penstock.decide.slurm_node import features, gres_change, topology
from penstock.decide.slurm_node.records import comment_action
from penstock.model.worker_set import WorkerSet


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """Actions about one worker; None for none.

    `wait` are seconds until it must be planned again although nothing that it depends on changes.
    """

    patch: PatchPod | None = None
    topology: SetNodeTopology | None = None
    comment: SetNodeComment | None = None
    features: SetNodeFeatures | None = None
    drain: DrainNode | PowerDownNode | None = None
    resume: UndrainNode | ResumeNode | None = None
    conditions: SetPodConditions | None = None
    delete: DeletePod | None = None
    wait: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do or to wait for."""
        return self == _NOTHING


_NOTHING = WorkerPlan()


def plan_workers(
    view: WorkerSetView, steps: Iterable[WorkerStep], cache: PlanCache
) -> Iterator[WorkerPlan]:
    """The actions of these steps. Workers that stay and need none are `settled` in the cache."""
    parameters = view.revisions.parameters
    for step in steps:
        if isinstance(step, DeleteWorker):
            yield plan_deletion(view.workers, step, parameters)
            continue
        found = plan_worker(view, step)
        if not found.is_empty:
            yield found
        elif step.deletion is None and not step.worker.is_finished:
            cache.settled.add(step.worker)


def plan_worker(view: WorkerSetView, step: KeepWorker) -> WorkerPlan:
    """All actions about a pod that stays for now."""
    worker, deletion = step.worker, step.deletion
    workers, marks, now = view.workers, view.workers.marks, view.now
    # A drain would stay on the record of a node that is powered down.
    powers = workers.powered is not None and deletion is DrainCause.SCALE_IN
    drained_for = None if powers else deletion
    request = drain_request(marks, worker, drained_for, view.propagated_conditions)
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
        drain = replace(update, while_idle=step.while_idle)
    else:
        resume = update
    if powers:
        drain, resume = power_saving.power_down(worker), None
    stays = deletion is None
    if wait is None and stays:
        wait = power_saving.not_rebooted_in(workers, worker, now)
    return WorkerPlan(
        patch=patch,
        topology=topology.step(marks, worker, view.rejected_topologies, now) if stays else None,
        comment=comment_action(
            workers, worker, going=not stays, parameters_by_revision=view.revisions.parameters
        ),
        features=features.step(marks, worker) if stays else None,
        drain=drain,
        resume=resume,
        conditions=conditions,
        wait=wait,
    )


def plan_deletion(
    workers: WorkerSet, step: DeleteWorker, parameters: Mapping[str, str] | None
) -> WorkerPlan:
    """Nothing but the deletion is written to the pod, or its resourceVersion would be another."""
    worker, meta = step.worker, step.worker.pod.metadata
    comment = None
    if worker.node is not None and worker.is_slurm_known:
        comment = comment_action(workers, worker, going=True, parameters_by_revision=parameters)
    return WorkerPlan(
        comment=comment,
        delete=DeletePod(
            meta.name, meta.uid, meta.resource_version, worker.slurm_node, step.ground, step.why
        ),
    )
