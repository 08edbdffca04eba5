"""Which workers are deleted now, and why; which stay, or wait for their deletion."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from penstock.catalog.event import ActionReason, Event
from penstock.decide.action import DeletionGround, EventReason
from penstock.decide.drain import eviction
from penstock.decide.drain.deletion_guard import DeletionVerdict, can_delete
from penstock.decide.drain.request import event_reason
from penstock.decide.nodeset.pod_roles import PodRoles
from penstock.decide.nodeset.power_saving import not_rebooted_in
from penstock.decide.observed.drain_reason import DrainCause
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.rollout.recreation import outdated, recreate_after

_FORGOTTEN = "Slurm has no record of its node, and its slurmd cannot register again"
_UPDATED = "The template changed"


@dataclass(frozen=True, slots=True)
class DeleteWorker:
    """It is safe to delete this worker, on this ground."""

    worker: Worker
    ground: DeletionGround
    why: EventReason


@dataclass(frozen=True, slots=True)
class KeepWorker:
    """A worker that stays for now.

    `deletion` is the cause for which it is to be deleted, once that is safe. With `while_idle` its
    node is drained only while it is idle.
    """

    worker: Worker
    deletion: DrainCause | None = None
    while_idle: bool = False


WorkerStep = DeleteWorker | KeepWorker


@dataclass(frozen=True, slots=True)
class WorkerSteps:
    """One step of each worker but the settled ones; `waiting` cannot be deleted yet, and why."""

    steps: tuple[WorkerStep, ...]
    waiting: Mapping[Worker, DeletionVerdict]


def worker_steps(
    view: WorkerSetView,
    observed: ObservedWorkers,
    roles: PodRoles,
    kept: Iterable[Worker],
    forgotten: Iterable[Worker],
    unowned: Collection[str],
) -> WorkerSteps:
    """Deletions by scale-in or of the whole set, then updates, replacements and the `kept`.

    `forgotten` are workers that Slurm has forgotten for good. Pods that are `unowned`, by name, are
    not deleted: their PVCs must first get them as owners.
    """
    waiting: dict[Worker, DeletionVerdict] = {}
    steps: list[WorkerStep] = []
    for worker in roles.to_delete:
        verdict = can_delete(worker.pod, observed.slurm, abandoned=observed.deletion.is_orphaned)
        if verdict.ground is None:
            waiting[worker] = verdict
            steps.append(KeepWorker(worker, roles.cause))
        elif worker.name not in unowned:
            reason = event_reason(view.workers.marks, roles.cause)
            why = EventReason(reason, verdict.why.message)
            steps.append(DeleteWorker(worker, verdict.ground, why))
    for worker in roles.updating:
        verdict = can_delete(worker.pod, observed.slurm)
        if verdict.ground is None:
            waiting[worker] = verdict
            steps.append(KeepWorker(worker, DrainCause.UPDATE, worker in roles.update.idle))
        else:
            why = EventReason(Event.ROLLING_UPDATE, _UPDATED)
            steps.append(DeleteWorker(worker, verdict.ground, why))
    why = EventReason(ActionReason.NODE_FORGOTTEN, _FORGOTTEN)
    steps += [DeleteWorker(worker, DeletionGround.FORGOTTEN, why) for worker in forgotten]
    steps += _of_kept(view, observed, kept)
    return WorkerSteps(tuple(steps), waiting)


def _of_kept(
    view: WorkerSetView, observed: ObservedWorkers, kept: Iterable[Worker]
) -> Iterator[WorkerStep]:
    """Those that stay, but for those that ended, cannot start or leave their Kubernetes node.

    They are created again.
    """
    on_delete = view.workers.update.type == "OnDelete"
    for worker in kept:
        if eviction.is_evicted(view.workers.placement, worker):
            verdict = can_delete(worker.pod, observed.slurm)
            if verdict.ground is not None:
                message = f"Kubernetes node {worker.kubernetes_node_name} is out of service"
                why = EventReason(Event.NODE_EVICTION, message)
                yield DeleteWorker(worker, verdict.ground, why)
                continue
        if recreate_after(worker, view.now) == 0:
            status = worker.pod.status
            message = f"Pod {worker.name} ended ({status.reason or status.phase})"
            why = EventReason(ActionReason.POD_ENDED, message)
            yield DeleteWorker(worker, DeletionGround.FINISHED, why)
            continue
        if _is_not_rebooted(view, observed, worker):
            message = f"Pod {worker.name} is older than the power-up of its node"
            why = EventReason(ActionReason.NOT_REBOOTED, message)
            yield DeleteWorker(worker, DeletionGround.NOT_REBOOTED, why)
            continue
        ground = None if on_delete else outdated(observed, worker)
        if ground is None:
            yield KeepWorker(worker)
        else:
            message = f"Pod {worker.name} never started, and the template changed"
            yield DeleteWorker(worker, ground, EventReason(ActionReason.OLD_REVISION, message))


def _is_not_rebooted(view: WorkerSetView, observed: ObservedWorkers, worker: Worker) -> bool:
    """Whether only another pod is the boot that slurmctld waits for."""
    if not_rebooted_in(view.workers, worker, view.now) != 0:
        return False
    verdict = can_delete(worker.pod, observed.slurm, not_rebooted=True)
    return verdict.ground is DeletionGround.NOT_REBOOTED
