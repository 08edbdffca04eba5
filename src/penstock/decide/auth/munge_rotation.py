"""Rotation of a munge key: all munged of a cluster change at one time, without a pod's restart.

munged has one key, so messages between pods with different keys are rejected. All pods are given
the changed Secret at once: the change of an annotation makes a kubelet refresh the file, and the
sidecar starts munged again within a second or two. Slurm repeats most of what fails meanwhile.

The annotation of slurmctld's pod has the digest of the cluster's key, and the condition shows that
a rotation is under way. Both outlive the operator: the next step is a function of them, of the
other pods' annotations and of the sidecars' logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from penstock.base.text import list_some

AGAIN_S: Final = 5.0
"""Seconds between two tries to have a kubelet refresh the file."""
PATIENCE_S: Final = 180.0
"""Seconds within which each sidecar has the key: a kubelet refreshes files each minute or so."""
_MOST_TRIES: Final = 12
_LINE: Final = "munge: munged has the key "
"""What the sidecar logs when it starts munged."""


@dataclass(frozen=True, slots=True)
class MungePod:
    """A pod with munged."""

    name: str
    mark: str = ""
    """Its annotation: the digest of a key, and the number of a later try."""
    is_slurmctld: bool = False
    runs: bool = True
    """Whether it is ready. One that is not reads the key when it is."""
    has_key: bool = False
    """Whether the sidecar's log shows the key."""


@dataclass(frozen=True, slots=True)
class MungeView:
    """Observed state that the decision depends on. Times are Unix seconds."""

    now: float
    digest: str
    """Of the key in the Secret."""
    pods: Sequence[MungePod]
    since: float | None = None
    """When the rotation began that is under way, or when it was reported as stuck."""
    was_stuck: bool = False
    """Whether it was reported as stuck."""


@dataclass(frozen=True, slots=True)
class MungeStep:
    """Annotations to write, in their order, and what is reported."""

    marks: tuple[tuple[str, str], ...] = ()
    words: str = ""
    """What a rotation waits for; empty without one."""
    stuck: bool = False
    begins: bool = False
    ends: bool = False


def step(view: MungeView) -> MungeStep:
    """Return the next step. A rotation is reported before the first pod is annotated."""
    slurmctld = [pod for pod in view.pods if pod.is_slurmctld]
    if view.since is None:
        if any(pod.mark and not _is_current(pod, view.digest) for pod in slurmctld):
            return MungeStep(words="pods get it", begins=True)
        return MungeStep(tuple((pod.name, view.digest) for pod in slurmctld if not pod.mark))
    if not slurmctld:
        return MungeStep(words="slurmctld has no pod")
    # slurmctld's last: with its annotation the others have theirs.
    others = [pod for pod in view.pods if not pod.is_slurmctld]
    due = [pod.name for pod in (*others, *slurmctld) if not _is_current(pod, view.digest)]
    if due:
        return MungeStep(tuple((name, view.digest) for name in due), "pods get it")
    late = [pod for pod in view.pods if pod.runs and not pod.has_key]
    if not late:
        return MungeStep(ends=True)
    # The condition has the time of its last change alone, which was that to stuck.
    waited = view.now - view.since + (PATIENCE_S if view.was_stuck else 0.0)
    mark = _again(view.digest, min(int(waited / AGAIN_S), _MOST_TRIES))
    words = f"munged of {list_some([pod.name for pod in late])} has the former key"
    marks = tuple((pod.name, mark) for pod in late if pod.mark != mark)
    return MungeStep(marks, words, stuck=waited >= PATIENCE_S)


def shows(log: str, digest: str) -> bool:
    """Whether munged was last started with the key of that digest."""
    found = [line for line in log.splitlines() if line.startswith(_LINE)]
    return bool(found) and found[-1] == _LINE + digest


def _is_current(pod: MungePod, digest: str) -> bool:
    return pod.mark.partition(".")[0] == digest


def _again(digest: str, attempt: int) -> str:
    return f"{digest}.{attempt}" if attempt > 0 else digest
