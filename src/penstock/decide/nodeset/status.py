"""The counts of a NodeSet's status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain

import msgspec

from penstock.api.cluster.external_slurm import ExternalSlurm
from penstock.api.kubernetes.conditions import Finding, conditions, set_conditions
from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.decide.observed.pod import is_daemon
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.placement import node_pins as pins
from penstock.decide.placement.daemonset import has_wrong_node_name
from penstock.model.worker_status import WorkerSetStatus
from penstock.slurm import state as model
from penstock.slurm.known import Unknown


def available_in(pod: Pod, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until the pod counts as available, 0 when it does, None while it is not ready."""
    ready = pod.condition("Ready")
    if ready is None or ready.status != "True" or pod.metadata.deleting:
        return None
    if min_ready_seconds <= 0:
        return 0.0
    since = times.parse(ready.last_transition_time)
    if since is None:
        return 0.0
    return max(0.0, since + min_ready_seconds - now)


def current(view: WorkerSetView, pod: Pod) -> bool:
    """Whether the pod is as wanted: of that revision, or of one that means the same, and mode."""
    found = view.workers.marks.revision_of(pod.metadata.labels)
    return (found == view.revision or found in view.equal_revisions) and in_place(view, pod)


def in_place(view: WorkerSetView, pod: Pod) -> bool:
    """Whether the pod is of the wanted scaling mode, and called as its machine is."""
    daemons = view.workers.per_node
    return is_daemon(view.workers.marks, pod) == daemons and not (
        daemons and has_wrong_node_name(view, pod)
    )


def dated(view: WorkerSetView) -> WorkerSetView:
    """The view with the pods that are not `current`: several questions are about them."""
    daemons = view.workers.per_node
    if daemons and _renamed(view):
        others = (pod.metadata.uid for pod in view.pods if not current(view, pod))
        return replace(view, outdated_uids=frozenset(others))
    wanted = {view.revision, *view.equal_revisions}
    made_otherwise = (
        uids
        for (revision, mode), uids in view.aggregates.by_revision.items()
        if revision not in wanted or mode != daemons
    )
    return replace(view, outdated_uids=frozenset(chain.from_iterable(made_otherwise)))


def _renamed(view: WorkerSetView) -> bool:
    """Whether the Slurm node of any pod in DaemonSet mode may have to be called otherwise."""
    aggregates = view.aggregates
    hosts = view.places.slurm_nodes if view.places is not None else dict[str, str]()
    if len(aggregates.slurm_node_by_node) < aggregates.daemons:
        return True
    return any(
        hosts.get(machine, host) != host for machine, host in aggregates.slurm_node_by_node.items()
    )


def old_ones(view: WorkerSetView, pods: Iterable[Pod]) -> list[Pod]:
    """Those of the view's pods that are not `current`."""
    old = dated(view).outdated_uids if view.outdated_uids is None else view.outdated_uids
    return [pod for pod in pods if pod.metadata.uid in old] if old else []


def status(
    view: WorkerSetView, slurm: SlurmSnapshot, findings: Sequence[Finding]
) -> WorkerSetStatus:
    """The new status, with conditions made of `findings`.

    What Slurm says is kept from the old status while Slurm is silent. `unavailableReplicas` is
    relative to the wanted number. A node counts by its base state, and as drained besides.
    """
    workers, aggregates = view.workers, view.aggregates
    old, meta = workers.last, workers.metadata
    available, seconds = aggregates.ready, workers.min_ready_seconds
    if seconds > 0:
        available = sum(1 for pod in view.pods if available_in(pod, seconds, view.now) == 0)
    idle, allocated, down, drain = _slurm_counts(view, slurm)
    return replace(
        old,
        observed_generation=meta.generation,
        replicas=aggregates.started,
        updated_replicas=len(view.pods) - len(old_ones(view, view.pods)),
        ready_replicas=aggregates.ready,
        available_replicas=available,
        unavailable_replicas=max(0, view.replicas - available),
        desired=view.replicas,
        slurm_idle=idle,
        slurm_allocated=allocated,
        slurm_down=down,
        slurm_drain=drain,
        revision=view.revision,
        ordinal_to_node=pins.pins(view),
        external=_external(view),
        selector=workers.selector_text,
        conditions=set_conditions(
            old.conditions,
            conditions(findings),
            meta.generation,
            datetime.fromtimestamp(view.now, UTC),
        ),
    )


def _external(view: WorkerSetView) -> ExternalSlurm | None:
    if view.external is None:
        return None
    since = view.silent_since
    told = times.write(since) if since is not None else ""
    return msgspec.structs.replace(view.external, silent_since=told)


def _slurm_counts(view: WorkerSetView, slurm: SlurmSnapshot) -> tuple[int, int, int, int]:
    old = view.workers.last
    if isinstance(slurm.nodes, Unknown):
        return old.slurm_idle, old.slurm_allocated, old.slurm_down, old.slurm_drain
    found = map(slurm.nodes.value.get, view.aggregates.slurm_nodes)
    # Thousands of nodes are in a handful of states.
    states = Counter(node.state for node in found if node is not None)
    return (
        sum(count for state, count in states.items() if "IDLE" in state),
        sum(count for state, count in states.items() if state & {"ALLOCATED", "MIXED"}),
        sum(count for state, count in states.items() if "DOWN" in state),
        sum(count for state, count in states.items() if model.is_draining(state)),
    )
