"""The pod-protect label: a disruption budget keeps pods with it from being evicted."""

from __future__ import annotations

from penstock.api.kubernetes.kinds import Pod
from penstock.decide.observed.pod import slurm_node_name
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.model.worker_marks import TRUE
from penstock.model.worker_set import WorkerSet


def labels(workers: WorkerSet, pod: Pod, slurm: SlurmSnapshot) -> dict[str, str | None]:
    """What must change at the pod's labels.

    A pod is protected while its node is busy or a job holds it, and an unanswered question takes no
    protection away.
    """
    key = workers.marks.protect
    if not key:
        return {}
    protected = pod.metadata.labels.get(key) == TRUE
    if not workers.protect_busy_pods:
        return {key: None} if protected else {}
    name = slurm_node_name(pod)
    node, jobs = slurm.node(name), slurm.jobs(name)
    if jobs or (node is not None and node.busy):
        return {} if protected else {key: TRUE}
    if slurm.unknown_reason is None and node is not None and protected:
        return {key: None}
    return {}
