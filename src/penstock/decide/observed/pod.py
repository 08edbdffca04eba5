"""Facts from the status of one worker pod alone, without Slurm."""

from __future__ import annotations

from penstock.api.kubernetes.kinds import ContainerStatus, Pod
from penstock.base import times
from penstock.model.worker_marks import WorkerMarks
from penstock.slurm.state import Node

SLURMD = "slurmd"
ENDED = frozenset({"Failed", "Succeeded"})
"""Phases of pods all of whose containers ended for good."""
SKEW_S = 2
"""Whole seconds on both sides of the comparison of two start times."""


def slurm_node_name(pod: Pod) -> str:
    """Name under which the pod's slurmd registers: its hostname up to the first dot.

    Source: slurmd(8), option -Z; gethostname(2) cut as Slurm's gethostname_short() does.
    """
    return pod.host


def is_per_node(marks: WorkerMarks, pod: Pod) -> bool:
    """Whether a pod was created for one Kubernetes node, by its label."""
    return pod.metadata.labels.get(marks.per_node) == marks.per_node_value


def kubernetes_node_name(pod: Pod) -> str:
    """The Kubernetes node that a pod runs on or, by its affinity, waits for; empty for any."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity
    node = affinity.node_affinity if affinity is not None else None
    required = node.required if node is not None else None
    for term in (required.node_selector_terms or ()) if required is not None else ():
        for one in term.match_fields or ():
            if one.key == "metadata.name" and one.operator == "In" and one.values:
                return one.values[0]
    return ""


def slurmd_container(pod: Pod) -> ContainerStatus | None:
    """Status of the slurmd container by the kubelet; None before its first report."""
    return next((c for c in pod.status.container_statuses or () if c.name == SLURMD), None)


def slurmd_started_at(pod: Pod) -> float | None:
    """When the slurmd that runs was started, in Unix seconds; None when none runs."""
    slurmd = slurmd_container(pod)
    running = slurmd.state.running if slurmd is not None else None
    return times.parse(running.started_at) if running is not None else None


def is_finished(pod: Pod) -> bool:
    """Whether all its containers ended for good."""
    return pod.status.phase in ENDED


def is_never_bound(pod: Pod) -> bool:
    """Whether it never had a Kubernetes node, so nothing of it ever ran."""
    return not pod.spec.node_name and slurmd_container(pod) is None


def has_never_started(pod: Pod) -> bool:
    """Whether the kubelet reports that slurmd waits for its first start.

    Before the first report of the kubelet this is unknown, so False.
    """
    slurmd = slurmd_container(pod)
    return (
        slurmd is not None
        and slurmd.restart_count == 0
        and slurmd.state.waiting is not None
        and slurmd.last_state.terminated is None
    )


def has_slurmd_stopped(pod: Pod) -> bool:
    """Whether the kubelet reports that slurmd ran and does not run now (a crash loop)."""
    slurmd = slurmd_container(pod)
    return (
        slurmd is not None
        and slurmd.state.running is None
        and (slurmd.state.waiting is not None or slurmd.state.terminated is not None)
    )


def is_registered(pod: Pod, node: Node) -> bool:
    """Whether Slurm's record comes from the slurmd that runs in the pod now."""
    if not pod.ready or "NOT_RESPONDING" in node.state:
        return False
    started = slurmd_started_at(pod)
    if not node.slurmd_start_time or started is None:
        return True
    return node.slurmd_start_time >= started - SKEW_S


def available_in(pod: Pod, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until the pod counts as available, 0 when it does, None while it is not ready."""
    if not pod.ready or pod.metadata.deleting:
        return None
    if min_ready_seconds <= 0:
        return 0.0
    ready = pod.condition("Ready")
    since = times.parse(ready.last_transition_time) if ready is not None else None
    if since is None:
        return 0.0
    return max(0.0, since + min_ready_seconds - now)
