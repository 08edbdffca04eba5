"""The active slurmctld among several, and the pods of slurmctld that must be recreated.

A standby reads slurm.conf at its start only; no reconfigure reaches it. After a takeover it would
run with that old file and lose jobs of partitions that were added since. So each change gives it a
new pod. Source: slurm.conf(5), SlurmctldHost; Slurm's source, slurmctld/backup.c.

The primary, which slurm.conf names first, takes control at its start. An active backup of Slurm
26.05 answers that request after 29 seconds, and writes its state after its answer, while the
primary reads it: all jobs may be lost. So the primary's pod waits in its container `handover`, and
the active backup's pod is deleted: slurmctld writes its state before it ends. A slurmctld that has
lost control must not start again in its pod, where nothing waits, so that pod is recreated. It has
seconds to end: it must not write its state any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.api.cluster.labels import TRUE
from penstock.api.cluster.marks import CONFIG_HASH
from penstock.api.cluster.pod_names import HANDOVER
from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.decide.observed.pod_failure import CRASH_LOOP
from penstock.decide.pod.workload import container_status, workload
from penstock.model.cluster import ClusterMarks
from penstock.slurm.conf.document import Document

DEFAULT_TIMEOUT_S = 120
"""SlurmctldTimeout where slurm.conf has none. Source: slurm.conf(5)."""
TAKEOVER_S = 10.0
"""Seconds beyond SlurmctldTimeout after which a backup has control: it asks in intervals."""
END_S = 1
"""Seconds that a slurmctld without control has to end."""
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


def waits(primary: Pod) -> bool:
    """Return whether the primary's pod waits for the end of the slurmctld that has control."""
    found = container_status(primary, HANDOVER)
    return found is not None and found.state.running is not None


def to_end(marks: ClusterMarks, primary: Pod | None, backups: Sequence[Pod]) -> Pod | None:
    """Return the pod of the backup that has control while the primary waits for it."""
    if primary is None or primary.metadata.deleting or not waits(primary):
        return None
    if any(one.metadata.deleting for one in backups):
        # It may be the one that has control. One at a time, so that a wrong label costs no other.
        return None
    return next((one for one in backups if is_active(marks, one)), None)


def has_lost_control(
    marks: ClusterMarks,
    primary: Pod | None,
    backups: Sequence[Pod],
    silent_s: float,
    slurm_conf: str | None,
) -> bool:
    """Return whether a backup has taken over from a primary that starts again in its pod, or may.

    `silent_s` is for how long this pod has not answered slurmrestd while a backup did. A pod whose
    kubelet still calls it ready is on a lost Kubernetes node: its containers do not run.
    """
    if primary is None or primary.metadata.deleting or waits(primary):
        return False
    own, waited = (container_status(primary, name) for name in ("slurmctld", HANDOVER))
    if own is None or waited is None or own.ready:
        return False
    if not any(is_active(marks, one) and _serves(one) for one in backups):
        return False
    waiting = own.state.waiting
    if own.started or (waiting is not None and waiting.reason == CRASH_LOOP):
        return silent_s > _timeout_s(slurm_conf) + TAKEOVER_S
    # It starts again and requests control, for which it waits before it reads any state. One that
    # starts after `handover` loads its state, however long that takes.
    return own.state.running is not None and own.restart_count > waited.restart_count


def _timeout_s(slurm_conf: str | None) -> int:
    value = Document.parse(slurm_conf or "").get("SlurmctldTimeout") or ""
    digits = value.strip()
    return int(digits) if digits.isascii() and digits.isdigit() else DEFAULT_TIMEOUT_S


def _serves(pod: Pod) -> bool:
    return bool(workload("slurmctld", 1, [pod]).ok)
