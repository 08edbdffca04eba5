"""The decision about one NodeSet: all policies, step by step.

`plan` is a pure function. A view without differences gives no action and the status it has; after
the actions of a plan the next one has no others but those that waited.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.decide.action import Action, SetPvcOwners
from penstock.decide.nodeset import power_saving
from penstock.decide.nodeset.action_order import in_order
from penstock.decide.nodeset.conditions import findings
from penstock.decide.nodeset.creation import plan_creations
from penstock.decide.nodeset.finalizer import finalizer_action
from penstock.decide.nodeset.observation import observe
from penstock.decide.nodeset.pod_roles import assign_roles
from penstock.decide.nodeset.pvc import blocking_creation, plan_pvcs
from penstock.decide.nodeset.requeue import requeue_after
from penstock.decide.nodeset.status import status
from penstock.decide.nodeset.worker_plan import plan_workers
from penstock.decide.nodeset.worker_steps import worker_steps
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.plan_cache import PlanCache
from penstock.decide.pod.conditions import LATER_S, must_wait
from penstock.decide.rollout import cannot_register
from penstock.decide.rollout.maintenance import maintenance
from penstock.decide.slurm_node import topology
from penstock.decide.slurm_node.records import orphaned_records
from penstock.decide.slurm_node.registration import registration
from penstock.model.worker_status import WorkerSetStatus


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions, in an order that is safe to stop in; the status to write; the findings.

    The conditions of `status` are made of `findings`. `requeue_after` are seconds until time alone
    changes the decision, None when only an event does. `takes_idle` is whether it takes workers,
    first those without a job: an answer of Slurm from a moment ago may name others.
    """

    actions: tuple[Action, ...]
    status: WorkerSetStatus
    findings: tuple[Finding, ...]
    requeue_after: float | None
    takes_idle: bool = False


def plan(view: WorkerSetView, cache: PlanCache | None = None) -> Plan:
    """Decide about one NodeSet. The `cache` of earlier plans about it saves work."""
    cache = PlanCache() if cache is None else cache
    observed = observe(view, cache)
    roles = assign_roles(view, observed)
    pvcs = plan_pvcs(view, roles)
    terminating_pvcs = blocking_creation(view, roles.missing)
    unowned = frozenset(one.pod for one in pvcs if isinstance(one, SetPvcOwners))
    registrations = registration(view, observed)
    replaced = cannot_register.to_replace(view, observed, roles.kept, registrations.due)
    kept = [one for one in roles.kept if one not in replaced] if replaced else roles.kept

    steps = worker_steps(view, observed, roles, cache.unsettled(kept), replaced, unowned)
    workers = tuple(plan_workers(view, steps.steps, cache))
    has_conditions = any(one.conditions is not None for one in workers)
    postponed = has_conditions and must_wait(observed.all, view.now)

    outdated = observed.outdated_of((*roles.kept, *roles.updating))
    reservation = maintenance(view, observed.slurm, observed.deletion, outdated)
    orphaned = orphaned_records(view, observed, roles.wanted)
    undrains = power_saving.undrains(view, observed)
    finalizer = finalizer_action(view, observed.deletion, orphaned, has_foreign_pvcs=bool(unowned))
    actions = in_order(
        creations=plan_creations(view, observed, roles, terminating_pvcs),
        pvcs=pvcs,
        workers=workers,
        with_conditions=not postponed,
        registrations=registrations.actions,
        records=(*orphaned.actions, *undrains),
        of_set=(*reservation.actions, *((finalizer,) if finalizer is not None else ())),
    )

    rejections = topology.current_rejections(
        view.workers.marks, view.rejected_topologies, observed.all
    )
    found = findings(
        view, observed, roles, steps.waiting, terminating_pvcs, rejections, reservation.finding
    )
    waits = (
        requeue_after(view, observed),
        LATER_S if postponed else None,
        topology.retry_after(rejections, view.now),
        reservation.requeue_after,
        registrations.requeue_after,
        *(one.wait for one in workers),
    )
    return Plan(
        actions,
        status(view, observed, found),
        found,
        min(filter(None, waits), default=None),
        roles.takes_idle,
    )
