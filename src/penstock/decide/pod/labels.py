"""Labels that a worker's pod lacks: protection, those of every worker, and its chart's."""

from __future__ import annotations

from penstock.decide.observed.worker import Worker
from penstock.decide.pod import chart_labels, protection
from penstock.model.worker_marks import WorkerMarks
from penstock.model.worker_set import WorkerSet


def changes(workers: WorkerSet, worker: Worker) -> dict[str, str | None]:
    """Changes of the pod's labels."""
    return {
        **protection.labels(workers, worker),
        **missing(workers.marks, worker),
        **chart_labels.changes(worker.pod, workers.chart_labels),
    }


def missing(marks: WorkerMarks, worker: Worker) -> dict[str, str | None]:
    """Labels by which users find a worker and that another operator did not write."""
    labels = worker.pod.metadata.labels
    return {key: value for key, value in marks.labels.items() if key not in labels}
