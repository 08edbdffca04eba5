"""The counts of a NodeSet's status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from penstock.api.cluster.external_slurm import ExternalSlurm
from penstock.api.kubernetes.conditions import Finding, conditions, set_conditions
from penstock.base import times
from penstock.decide.observed.deletion import Deletion
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.placement import node_pins
from penstock.model.worker_status import WorkerSetStatus
from penstock.slurm.known import Unknown
from penstock.slurm.state import is_draining


def status(
    view: WorkerSetView, observed: ObservedWorkers, findings: Sequence[Finding]
) -> WorkerSetStatus:
    """The new status, with conditions made of `findings`.

    Counts of Slurm nodes stay those of the old status while Slurm is unknown. `unavailableReplicas`
    is relative to the wanted number. A node counts by its base state, and as drained besides.
    """
    workers, aggregates = view.workers, observed.aggregates
    old, meta = workers.last, workers.metadata
    available, seconds = aggregates.ready, workers.min_ready_seconds
    if seconds > 0:
        available = sum(1 for one in observed.all if one.available_in(seconds, view.now) == 0)
    idle, allocated, down, drain = _slurm_counts(view, observed)
    return replace(
        old,
        observed_generation=meta.generation,
        replicas=aggregates.started,
        updated_replicas=len(observed.all) - len(observed.outdated),
        ready_replicas=aggregates.ready,
        available_replicas=available,
        unavailable_replicas=max(0, observed.replicas - available),
        desired=observed.replicas,
        slurm_idle=idle,
        slurm_allocated=allocated,
        slurm_down=down,
        slurm_drain=drain,
        revision=view.revisions.wanted,
        ordinal_to_node=node_pins.pins(view, observed.all),
        external=_external(view, observed.deletion),
        selector=workers.selector_text,
        conditions=set_conditions(
            old.conditions,
            conditions(findings),
            meta.generation,
            datetime.fromtimestamp(view.now, UTC),
        ),
    )


def _external(view: WorkerSetView, deletion: Deletion) -> ExternalSlurm | None:
    if view.external is None:
        return None
    since = deletion.silent_since
    silent_since = times.write(since) if since is not None else ""
    return msgspec.structs.replace(view.external, silent_since=silent_since)


def _slurm_counts(view: WorkerSetView, observed: ObservedWorkers) -> tuple[int, int, int, int]:
    old, slurm = view.workers.last, observed.slurm
    if isinstance(slurm.nodes, Unknown):
        return old.slurm_idle, old.slurm_allocated, old.slurm_down, old.slurm_drain
    states = observed.slurm_states
    return (
        sum(count for state, count in states.items() if "IDLE" in state),
        sum(count for state, count in states.items() if state & {"ALLOCATED", "MIXED"}),
        sum(count for state, count in states.items() if "DOWN" in state),
        sum(count for state, count in states.items() if is_draining(state)),
    )
