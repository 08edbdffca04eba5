"""The pod-deadline annotation: until when the jobs of a pod's node may run."""

from __future__ import annotations

from penstock.base import times
from penstock.decide.observed.worker import Worker
from penstock.model.worker_marks import WorkerMarks


def changes(marks: WorkerMarks, worker: Worker) -> dict[str, str | None]:
    """Changes of the pod's annotations; none while Slurm's jobs are unknown."""
    if worker.jobs is None or not marks.deadline:
        return {}
    end = worker.jobs_deadline
    wanted = None if end is None else times.write(end)
    if worker.annotations.get(marks.deadline) == wanted:
        return {}
    return {marks.deadline: wanted}


def sort_key(marks: WorkerMarks, worker: Worker) -> float:
    """The deadline for scale-in: by Slurm's jobs, else the last one that was written."""
    if worker.jobs is None:
        return times.parse(worker.annotations.get(marks.deadline)) or 0.0
    return float(worker.jobs_deadline or 0)
