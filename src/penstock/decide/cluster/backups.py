"""The active slurmctld among several, and the standbys whose pods must be recreated.

A standby reads slurm.conf at its start only; no reconfigure reaches it. After a takeover it would
run with that old file and lose jobs of partitions that were added since. So each change gives it a
new pod. Source: slurm.conf(5), SlurmctldHost; Slurm's source, slurmctld/backup.c.
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
"""Seconds for which a configuration must be in effect before standbys are recreated for it."""


def is_active(marks: ClusterMarks, pod: Pod) -> bool:
    """Return whether a pod has the label by which the Service selects the active slurmctld."""
    return pod.metadata.labels.get(marks.active) == TRUE


def active(
    marks: ClusterMarks, pods: Sequence[Pod], answering: Mapping[str, bool] | None
) -> str | None:
    """Return the name of the pod that must get the label; None when the label stays.

    `pods` are in the order of SlurmctldHost, in which Slurm takes over. `answering` has for each
    pod whether its slurmctld answers slurmrestd; None while that is unknown. Then the active pod
    stays active while it runs, and after it the first pod that runs.
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
    """Return the pods without an annotation that names their configuration."""
    return [
        pod
        for pod in pods
        if not pod.metadata.deleting and CONFIG_HASH not in pod.metadata.annotations
    ]


def outdated(
    marks: ClusterMarks, pods: Sequence[Pod], effective: str, since: str, now: float
) -> list[Pod]:
    """Return the standbys that started with another configuration than the active one."""
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
