"""The pod-protect label: a disruption budget keeps pods with it from being evicted."""

from __future__ import annotations

from penstock.decide.observed.worker import Worker
from penstock.model.worker_marks import TRUE
from penstock.model.worker_set import WorkerSet


def labels(workers: WorkerSet, worker: Worker) -> dict[str, str | None]:
    """What must change at the pod's labels.

    A pod is protected while its node is busy or a job holds it, and an unanswered question takes no
    protection away.
    """
    key = workers.marks.protect
    if not key:
        return {}
    protected = worker.pod.metadata.labels.get(key) == TRUE
    if not workers.protect_busy_pods:
        return {key: None} if protected else {}
    if worker.is_busy:
        return {} if protected else {key: TRUE}
    if worker.is_slurm_known and worker.node is not None and protected:
        return {key: None}
    return {}
