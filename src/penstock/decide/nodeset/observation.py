"""Observes the workers of a set, with what the last decision observed."""

from __future__ import annotations

from penstock.decide.observed.pod_aggregates import changed_positions, update_aggregates
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.workers import ObservedWorkers, observe_workers
from penstock.decide.placement.daemonset import place
from penstock.decide.plan_cache import PlanCache


def observe(view: WorkerSetView, cache: PlanCache) -> ObservedWorkers:
    """Each worker once, and the sums over all."""
    workers, former = view.workers, cache.observed
    before = former.aggregates if former is not None else None
    changed = changed_positions(before.pods, view.pods) if before is not None else None
    aggregates = update_aggregates(before, workers.names, workers.marks, view.pods, changed)
    placements = place(view, aggregates, cache)
    observed = observe_workers(view, aggregates, placements, former, changed)
    meta = workers.metadata
    cache.observe(
        observed,
        (meta.namespace, meta.name, meta.uid),
        (observed.context, observed.slurm.unknown_reason),
        (view.revisions.parameters, view.propagated_conditions),
        (workers.update.type, workers.protect_busy_pods, workers.chart_labels),
        {node for node, one in view.rejected_topologies.items() if one.again_at > view.now},
    )
    return observed
