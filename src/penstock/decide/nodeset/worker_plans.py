"""The plans of all workers: deletions, updates, replacements and what remains, in this order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from penstock.decide.action import DeletionGround, EventReason
from penstock.decide.drain.deletion_guard import DeletionVerdict, can_delete
from penstock.decide.drain.request import event_reason
from penstock.decide.nodeset.pod_roles import PodRoles
from penstock.decide.nodeset.worker_plan import WorkerPlan, plan_deletion, plan_worker
from penstock.decide.observed.deletion import deletion_of
from penstock.decide.observed.drain_reason import DrainCause
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.plan_cache import PlanCache
from penstock.decide.rollout.recreation import outdated, recreate_after

_FORGOTTEN = "Slurm has no record of its node and cannot have it register again"
_UPDATED = "One of a newer template takes its place"


@dataclass(frozen=True, slots=True)
class Departures:
    """Plans of workers that are to be deleted; `waiting` are those that cannot be deleted yet."""

    plans: tuple[WorkerPlan, ...] = ()
    waiting: Mapping[Worker, DeletionVerdict] = field(default_factory=dict[Worker, DeletionVerdict])


def plan_scale_in(
    view: WorkerSetView, observed: ObservedWorkers, roles: PodRoles, unowned: Collection[str]
) -> Departures:
    """Delete the workers that scale-in or the deletion of the NodeSet takes, once that is safe.

    Pods that are `unowned`, by name, wait: their PVCs must first get them as owners.
    """
    plans: list[WorkerPlan] = []
    waiting: dict[Worker, DeletionVerdict] = {}
    is_orphaned = deletion_of(view).is_orphaned
    for worker in roles.to_delete:
        verdict = can_delete(worker.pod, observed.slurm, abandoned=is_orphaned)
        if verdict.ground is None:
            waiting[worker] = verdict
            plans.append(plan_worker(view, worker, roles.cause))
        elif worker.name not in unowned:
            reason = event_reason(view.workers.marks, roles.cause)
            why = EventReason(reason, verdict.why.message)
            plans.append(plan_deletion(view, worker, verdict.ground, why))
    return Departures(tuple(plans), waiting)


def plan_update(view: WorkerSetView, observed: ObservedWorkers, roles: PodRoles) -> Departures:
    """Delete the workers that an update replaces, once that is safe."""
    plans: list[WorkerPlan] = []
    waiting: dict[Worker, DeletionVerdict] = {}
    for worker in roles.updating:
        verdict = can_delete(worker.pod, observed.slurm)
        if verdict.ground is None:
            waiting[worker] = verdict
            is_idle = worker in roles.update.idle
            plans.append(plan_worker(view, worker, DrainCause.UPDATE, while_idle=is_idle))
        else:
            why = EventReason("RollingUpdate", _UPDATED)
            plans.append(plan_deletion(view, worker, verdict.ground, why))
    return Departures(tuple(plans), waiting)


def plan_replacements(view: WorkerSetView, forgotten: Iterable[Worker]) -> Iterator[WorkerPlan]:
    """Delete the workers that Slurm has forgotten for good."""
    why = EventReason("SlurmNodeForgotten", _FORGOTTEN)
    for worker in forgotten:
        yield plan_deletion(view, worker, DeletionGround.FORGOTTEN, why)


def plan_kept(
    view: WorkerSetView,
    observed: ObservedWorkers,
    kept: Iterable[Worker],
    cache: PlanCache,
) -> Iterator[WorkerPlan]:
    """Plan the workers that stay, but those that needed no action and are unchanged since."""
    for worker in cache.unsettled(kept):
        found = _plan_kept(view, observed, worker)
        if not found.is_empty:
            yield found
        elif not worker.is_finished:
            cache.settled.add(worker)


def _plan_kept(view: WorkerSetView, observed: ObservedWorkers, worker: Worker) -> WorkerPlan:
    """One that stays, or is created again as it ended or cannot start."""
    if recreate_after(worker, view.now) == 0:
        status = worker.pod.status
        message = f"Pod {worker.name} ended ({status.reason or status.phase})"
        why = EventReason("PodEnded", message)
        return plan_deletion(view, worker, DeletionGround.FINISHED, why)
    ground = outdated(view, observed, worker)
    if ground is not None:
        message = f"Pod {worker.name} never got to work and has an older template"
        return plan_deletion(view, worker, ground, EventReason("OldRevision", message))
    return plan_worker(view, worker)
