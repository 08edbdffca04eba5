"""Which pods go first when a NodeSet shrinks.

The order is slurm-operator's documented one: not assigned to a Kubernetes node, Pending before
Unknown before Running, not ready, lower deletion cost, earlier deadline of jobs (no job is
earliest), cordoned; then, before the higher ordinal, the one of an older revision and the one that
is idle in Slurm; then more recently ready, then newer. A pod that an update takes already is as
good as not ready. So is one that scale-in has taken, or the two would change places for ever.
Neither holds while its node has a job: it was taken a moment too late, and an idle one goes in its
place. What is left equal goes by name, so that two processes take the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.base.text import list_some
from penstock.catalog.reasons.workers import WorkerReason
from penstock.decide.observed.worker import Worker
from penstock.decide.pod import deadline
from penstock.model.worker_marks import WorkerMarks

Rank: TypeAlias = tuple[tuple[float, ...], str]

_COST = re.compile(r"-?(0|[1-9][0-9]{0,9})")
_PHASES = {"Pending": 1.0, "Unknown": 2.0, "Running": 3.0}


def deletion_cost(marks: WorkerMarks, pod: Pod) -> int:
    """The annotation's value, 0 for none or for what is not a 32-bit number in plain form."""
    return _cost(marks, pod) or 0


def cost_findings(marks: WorkerMarks, pods: Iterable[Pod]) -> list[Finding]:
    """Findings about annotations that are no cost. They leave Ready alone, since the pods run."""
    wrong = [
        pod
        for pod in pods
        if marks.deletion_cost in pod.metadata.annotations
        if _cost(marks, pod) is None
    ]
    if not wrong:
        return []
    shown = [
        f"{pod.metadata.name} ({pod.metadata.annotations[marks.deletion_cost][:20]!r})"
        for pod in sorted(wrong, key=lambda pod: pod.metadata.name)
    ]
    message = (
        f"Annotation {marks.deletion_cost} of {list_some(shown)} is no whole number from "
        f"{-(2**31)} to {2**31 - 1} and counts as 0. Write a number, or remove it"
    )
    return [Finding(True, WorkerReason.DELETION_COST_IGNORED, message)]


def _cost(marks: WorkerMarks, pod: Pod) -> int | None:
    """0 without the annotation, None for what is no cost."""
    text = pod.metadata.annotations.get(marks.deletion_cost, "0")
    if not _COST.fullmatch(text):
        return None
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else None


def scale_in_order(marks: WorkerMarks, worker: Worker) -> Rank:
    """Sort key: the worker with the lowest goes first. Pods that have ended precede all others."""
    pod, busy, ordinal = worker.pod, worker.is_busy, worker.ordinal
    taken = worker.deletion_requested_at is not None and not busy
    ready = pod.condition("Ready")
    order = (
        0.0 if worker.is_finished else 1.0,
        1.0 if pod.spec.node_name else 0.0,
        _PHASES.get(pod.status.phase or "Pending", 0.0),
        1.0 if worker.is_ready and not taken else 0.0,
        float(deletion_cost(marks, pod)),
        deadline.sort_key(marks, worker),
        0.0 if marks.is_cordoned(worker.annotations) else 1.0,
        1.0 if worker.is_current else 0.0,
        1.0 if busy else 0.0,
        -float(ordinal if ordinal is not None else -1),
        -(times.parse(ready.last_transition_time if ready else None) or 0.0),
        -(times.parse(pod.metadata.creation_timestamp) or 0.0),
    )
    return order, worker.name


def workers_to_scale_in(
    marks: WorkerMarks, workers: tuple[Worker, ...], count: int
) -> tuple[Worker, ...]:
    """The `count` workers that go."""
    if count <= 0:
        return ()
    return tuple(sorted(workers, key=lambda one: scale_in_order(marks, one))[:count])
