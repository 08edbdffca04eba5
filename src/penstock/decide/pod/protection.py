"""The pod-protect label: a disruption budget keeps pods with it from being evicted."""

from __future__ import annotations

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky.nodeset import NodeSet
from penstock.decide.observed.pod import slurm_node_name
from penstock.decide.observed.slurm_view import SlurmView


def labels(nodeset: NodeSet, pod: Pod, slurm: SlurmView) -> dict[str, str | None]:
    """What must change at the pod's labels.

    A pod is protected while its node is busy or a job holds it, and an unanswered question takes no
    protection away.
    """
    protected = pod.metadata.labels.get(slinky_labels.POD_PROTECT) == app_labels.TRUE
    if not nodeset.spec.workload_disruption_protection:
        return {slinky_labels.POD_PROTECT: None} if protected else {}
    name = slurm_node_name(pod)
    node, jobs = slurm.node(name), slurm.jobs(name)
    if jobs or (node is not None and node.busy):
        return {} if protected else {slinky_labels.POD_PROTECT: app_labels.TRUE}
    if slurm.silence is None and node is not None and protected:
        return {slinky_labels.POD_PROTECT: None}
    return {}
