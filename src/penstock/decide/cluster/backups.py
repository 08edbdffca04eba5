"""Which slurmctld of several works, and which standby is to be started anew.

A standby reads slurm.conf when it starts, and is told of no reconfigure: when it took over it would
work with what it read then, and lose jobs of partitions that came since. So it gets a new pod after
each change. Source: slurm.conf(5), SlurmctldHost; Slurm's source, slurmctld/backup.c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.api.cluster.labels import TRUE
from penstock.api.cluster.marks import CONFIG_HASH
from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.decide.pod.workload import workload
from penstock.model.cluster import ClusterMarks

SETTLED_S = 10.0
"""For so long a configuration must be in effect before standbys are started with it."""


def is_active(marks: ClusterMarks, pod: Pod) -> bool:
    """Whether a pod carries the label by which the Service finds the one that works."""
    return pod.metadata.labels.get(marks.active) == TRUE


def active(
    marks: ClusterMarks, pods: Sequence[Pod], answering: Mapping[str, bool] | None
) -> str | None:
    """The name of the pod that is to carry the label; None when it is to stay as it is.

    `pods` are in the order of SlurmctldHost, in which Slurm hands over; `answering` says by pod
    whether its slurmctld answers slurmrestd, None when nobody could be asked. Then the one that was
    active stays so while it runs, and the first one that runs takes its place.
    """
    living = [pod for pod in pods if not pod.metadata.deleting]
    if answering is not None:
        found = [pod for pod in living if answering.get(pod.metadata.name)]
    elif any(is_active(marks, pod) and _serves(pod) for pod in living):
        return None
    else:
        found = [pod for pod in living if _serves(pod)]
    return found[0].metadata.name if found else None


def unmarked(pods: Sequence[Pod]) -> list[Pod]:
    """Pods of which it is not noted yet which configuration they started with."""
    return [
        pod
        for pod in pods
        if not pod.metadata.deleting and CONFIG_HASH not in pod.metadata.annotations
    ]


def outdated(
    marks: ClusterMarks, pods: Sequence[Pod], effective: str, since: str, now: float
) -> list[Pod]:
    """Standbys that started with another configuration than the one in effect since then."""
    changed = times.parse(since)
    if not effective or changed is None or now - changed < SETTLED_S:
        return []
    if not any(is_active(marks, pod) for pod in pods):
        # Any of them may be the one that works.
        return []
    return [
        pod
        for pod in pods
        if not is_active(marks, pod) and not pod.metadata.deleting
        if pod.metadata.annotations.get(CONFIG_HASH, effective) != effective
    ]


def _serves(pod: Pod) -> bool:
    return bool(workload("slurmctld", 1, [pod]).ok)
