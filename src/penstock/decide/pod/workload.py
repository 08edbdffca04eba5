"""Condition of a StatefulSet or Deployment of ours, from the state of its pods."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import ContainerStatus, Pod, StatefulSet
from penstock.base.text import list_some
from penstock.catalog.marks import kubernetes
from penstock.catalog.reasons.pods import PodReason
from penstock.decide.observed.pod_failure import (
    CRASH_LOOP,
    next_step,
    pod_failure,
    termination_message,
)
from penstock.model.image_sources import ImageSources

_REVISION = kubernetes.REVISION.key
_BY_OTHERS = frozenset({0, 137, 143})
"""Exit codes of an orderly end, and of ends by SIGKILL and SIGTERM."""
_SIGNALLED = 128
"""A higher exit code means an end by a signal. Source: runtime convention, as in a shell."""


def workload(
    what: str, wanted: int, pods: Sequence[Pod], of: ImageSources | None = None
) -> Finding:
    """Return whether `wanted` pods of `what` (slurmctld, slurmrestd, login) are ready.

    A pod counts once its container of that name is ready: a sidecar that restarts does not affect
    the service. `of` is the object that owns the pods.
    """
    living = [pod for pod in pods if not pod.metadata.deleting]
    ready = sum(1 for pod in living if _serves(pod, what))
    if ready >= wanted:
        return Finding(True, PodReason.READY, f"{ready} of {wanted} {what} pods are ready")
    found = [
        why for pod in living if not _serves(pod, what) and (why := pod_failure(pod)) is not None
    ]
    counted = f"{ready} of {wanted} {what} pods are ready"
    lasting = [one for one in found if one.needs_action]
    if lasting:
        texts = list_some([one.text for one in lasting], "; ")
        return Finding(False, PodReason.FAILING, f"{counted}: {texts}{next_step(of, lasting)}")
    shown = list_some([one.text for one in found], "; ")
    return Finding(None, PodReason.NOT_READY, f"{counted}: {shown}" if shown else counted)


def _serves(pod: Pod, name: str) -> bool:
    every = pod.status.container_statuses or ()
    return pod.ready or any(one.name == name and one.ready for one in every)


def stuck(pod: Pod, name: str, revision: str | None) -> bool:
    """Whether a StatefulSet's pod of another revision never got its container started.

    Kubernetes waits for such a pod to become ready before it replaces it, for ever. Source:
    Kubernetes documentation, StatefulSets, "Forced rollback".
    """
    if not revision or pod.metadata.labels.get(_REVISION, revision) == revision:
        return False
    return any(
        one.name == name and one.state.running is None
        for one in pod.status.container_statuses or ()
    )


def is_outdated(pod: Pod, of: StatefulSet | None) -> bool:
    """Return whether a StatefulSet has a newer template than its pod, and is to replace it.

    A generation that its controller has not observed yet may have one.
    """
    if of is None:
        return False
    observed, revision = of.status.observed_generation, of.status.update_revision
    if observed is not None and observed < of.metadata.generation:
        return True
    return bool(revision) and pod.metadata.labels.get(_REVISION, revision) != revision


def crashed(pod: Pod, name: str) -> bool:
    """Return whether a container ended by itself and is not ready again.

    It may run at the moment and end on the same file once more. A container that a signal ended did
    not fail on its files, and the kubelet restarts it faster than a new pod would start.
    """
    for container in pod.status.container_statuses or ():
        if container.name != name or container.ready:
            continue
        waiting = container.state.waiting
        if waiting is not None and waiting.reason == CRASH_LOOP:
            return True
        ended = container.state.terminated or container.last_state.terminated
        return ended is not None and 0 < ended.exit_code < _SIGNALLED
    return False


def ended_at_start(pod: Pod, name: str) -> str:
    """Return the last words of a container in a crash loop; empty for another.

    SIGKILL and SIGTERM do not count: the kubelet sends them, or the kernel when memory runs out.
    """
    for container in pod.status.container_statuses or ():
        waiting, ended = container.state.waiting, container.last_state.terminated
        if container.name != name or waiting is None or ended is None:
            continue
        if waiting.reason == CRASH_LOOP and ended.exit_code not in _BY_OTHERS:
            return termination_message(container) or f"it ended with exit code {ended.exit_code}"
    return ""


def container_status(pod: Pod, name: str) -> ContainerStatus | None:
    """Return what the kubelet reports of a container of a pod; None before it reports any."""
    every = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    return next((one for one in every if one.name == name), None)


def restarts(pod: Pod, name: str) -> int:
    """Return how often the kubelet has restarted a container of a pod."""
    found = container_status(pod, name)
    return found.restart_count if found is not None else 0


def was_started(pod: Pod, name: str) -> bool:
    """Return whether a container of a pod runs or ran, so that its image and volumes exist."""
    return any(
        one.name == name
        and (one.state.running or one.state.terminated or one.last_state.terminated) is not None
        for one in pod.status.container_statuses or ()
    )
