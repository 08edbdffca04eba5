"""What one worker pod's own status says, before Slurm is asked."""

from __future__ import annotations

from penstock.api.kubernetes.kinds import ContainerStatus, Pod
from penstock.base import times
from penstock.model.worker_marks import WorkerMarks

SLURMD = "slurmd"
ENDED = frozenset({"Failed", "Succeeded"})
"""Phases of pods all of whose containers ended for good."""


def slurm_node_name(pod: Pod) -> str:
    """Name under which the pod's slurmd registers: its host's name up to the first dot.

    Source: slurmd(8), option -Z; gethostname(2) cut as Slurm's gethostname_short() does.
    """
    return pod.host


def is_daemon(marks: WorkerMarks, pod: Pod) -> bool:
    """Whether a pod was made for one Kubernetes node, as its label says."""
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


def missing_labels(marks: WorkerMarks, pod: Pod) -> dict[str, str | None]:
    """Labels that users find a worker by and that another operator did not give it."""
    has = pod.metadata.labels
    return {key: value for key, value in marks.labels.items() if key not in has}


def slurmd_container(pod: Pod) -> ContainerStatus | None:
    """What the kubelet says of the slurmd container; None while it said nothing yet."""
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
    """Whether the kubelet says that slurmd waits for its first start.

    A kubelet that said nothing yet is no witness.
    """
    slurmd = slurmd_container(pod)
    return (
        slurmd is not None
        and slurmd.restart_count == 0
        and slurmd.state.waiting is not None
        and slurmd.last_state.terminated is None
    )


def has_slurmd_stopped(pod: Pod) -> bool:
    """Whether the kubelet says that slurmd ran and does not run now (a crash loop)."""
    slurmd = slurmd_container(pod)
    return (
        slurmd is not None
        and slurmd.state.running is None
        and (slurmd.state.waiting is not None or slurmd.state.terminated is not None)
    )
