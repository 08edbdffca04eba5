"""How a slurmctld comes up with the files that were delivered to its pod, by that pod's status."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import Pod
from penstock.decide.pod.workload import ended_at_start, restarts, was_started

SLURMCTLD = "slurmctld"
_COUNT = re.compile("[0-9]{1,9}")
SERVES_S = 300.0
"""For so long a slurmctld that runs may take to serve: its state may be that of a large cluster."""


@dataclass(frozen=True, slots=True)
class Start:
    """A slurmctld that has to come up: its pod's uid, the hash of its files, and since when.

    `is_older` than its files is a process that the kubelet started before they were delivered.
    `since` is in monotonic seconds.
    """

    pod: str
    files: str
    is_older: bool
    since: float


@dataclass(frozen=True, slots=True)
class StartResult:
    """What to remember of the start, and why slurmctld does not come up, if that is known.

    `down` is about its files; `hung` is about a process that was started with others.
    """

    start: Start | None = None
    down: str = ""
    hung: str = ""


def observe(
    before: Start | None, pod: Pod | None, files: str, *, node_ready: bool, now: float
) -> StartResult:
    """Judge the start of a slurmctld that does not serve, whose pod is to have these `files`.

    The clock runs while its container runs on a Kubernetes node that is ready: an image that is
    pulled, or a pod without a node, proves nothing about the files. A process that was started
    before the delivery proves nothing about them either.
    """
    if pod is None or pod.metadata.deleting:
        return StartResult()
    if pod.metadata.annotations.get(marks.CONFIG_HASH) != files:
        return StartResult()
    is_older = _is_older_than_files(pod)
    if not is_older and (words := ended_at_start(pod, SLURMCTLD)):
        return StartResult(before, down=words)
    if not node_ready or not was_started(pod, SLURMCTLD):
        return StartResult()
    start = Start(pod.metadata.uid, files, is_older, now)
    if before is not None and replace(before, since=now) == start:
        start = before
    if now - start.since < SERVES_S:
        return StartResult(start)
    if is_older:
        waited = f"for {SERVES_S:.0f} s after new files were delivered to it"
        return StartResult(
            start, hung=f"slurmctld, which was started with earlier files, was silent {waited}"
        )
    return StartResult(start, down=f"it was started {SERVES_S:.0f} s ago and does not answer")


def _is_older_than_files(pod: Pod) -> bool:
    """Whether the last process of slurmctld was started before its files were delivered."""
    count = pod.metadata.annotations.get(marks.CONFIG_DELIVERED_TO, "")
    return _COUNT.fullmatch(count) is not None and restarts(pod, SLURMCTLD) <= int(count)
