"""The counts of a NodeSet's status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain

from penstock.api.kubernetes.conditions import Check, conditions, set_conditions
from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.decide.observed.pod import is_daemon
from penstock.decide.observed.slurm_view import SlurmView
from penstock.decide.observed.view import NodeSetView
from penstock.decide.placement import node_pins as pins
from penstock.decide.placement.daemonset import misnamed
from penstock.model.worker_status import ExternalSlurm, WorkerSetStatus
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


def current(view: NodeSetView, pod: Pod) -> bool:
    """Whether the pod is as wanted: of that revision, or of one that means the same, and mode."""
    found = view.workers.marks.revision_of(pod.metadata.labels)
    return (found == view.revision or found in view.same_revisions) and in_place(view, pod)


def in_place(view: NodeSetView, pod: Pod) -> bool:
    """Whether the pod is of the wanted scaling mode, and called as its machine is."""
    daemons = view.workers.per_node
    return is_daemon(view.workers.marks, pod) == daemons and not (daemons and misnamed(view, pod))


def dated(view: NodeSetView) -> NodeSetView:
    """The view with the pods that are not `current`: several questions are about them."""
    daemons = view.workers.per_node
    if daemons and _renamed(view):
        others = (pod.metadata.uid for pod in view.pods if not current(view, pod))
        return replace(view, old=frozenset(others))
    wanted = {view.revision, *view.same_revisions}
    made_otherwise = (
        uids
        for (revision, mode), uids in view.crowd.made_of.items()
        if revision not in wanted or mode != daemons
    )
    return replace(view, old=frozenset(chain.from_iterable(made_otherwise)))


def _renamed(view: NodeSetView) -> bool:
    """Whether the Slurm node of any pod in DaemonSet mode may have to be called otherwise."""
    crowd = view.crowd
    hosts = view.places.hosts if view.places is not None else dict[str, str]()
    if len(crowd.machines) < crowd.daemons:
        return True
    return any(hosts.get(machine, host) != host for machine, host in crowd.machines.items())


def old_ones(view: NodeSetView, pods: Iterable[Pod]) -> list[Pod]:
    """Those of the view's pods that are not `current`."""
    old = dated(view).old if view.old is None else view.old
    return [pod for pod in pods if pod.metadata.uid in old] if old else []


def status(view: NodeSetView, slurm: SlurmView, checks: Sequence[Check]) -> WorkerSetStatus:
    """The new status, with conditions made of `checks`.

    What Slurm says is kept from the old status while Slurm is silent. `unavailableReplicas` is
    relative to the wanted number. A node counts by its base state, and as drained besides.
    """
    workers, crowd = view.workers, view.crowd
    old, meta = workers.last, workers.metadata
    available, seconds = crowd.ready, workers.min_ready_seconds
    if seconds > 0:
        available = sum(1 for pod in view.pods if available_in(pod, seconds, view.now) == 0)
    idle, allocated, down, drain = _slurm_counts(view, slurm)
    return replace(
        old,
        observed_generation=meta.generation,
        replicas=crowd.phased,
        updated_replicas=len(view.pods) - len(old_ones(view, view.pods)),
        ready_replicas=crowd.ready,
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
            conditions(checks),
            meta.generation,
            datetime.fromtimestamp(view.now, UTC),
        ),
    )


def _external(view: NodeSetView) -> ExternalSlurm | None:
    if view.external is None:
        return None
    since = view.silent_since
    told = times.write(since) if since is not None else ""
    return replace(view.external, silent_since=told)


def _slurm_counts(view: NodeSetView, slurm: SlurmView) -> tuple[int, int, int, int]:
    old = view.workers.last
    if isinstance(slurm.nodes, Unknown):
        return old.slurm_idle, old.slurm_allocated, old.slurm_down, old.slurm_drain
    found = map(slurm.nodes.value.get, view.crowd.hosts)
    # Thousands of nodes are in a handful of states.
    states = Counter(node.state for node in found if node is not None)
    return (
        sum(count for state, count in states.items() if "IDLE" in state),
        sum(count for state, count in states.items() if state & {"ALLOCATED", "MIXED"}),
        sum(count for state, count in states.items() if "DOWN" in state),
        sum(count for state, count in states.items() if model.drains(state)),
    )
