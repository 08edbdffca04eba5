"""The PodDisruptionBudget of a SlurmCluster's workers, its own and those of its NodeSets."""

from __future__ import annotations

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.parts.disruption_budget import disruption_budget
from penstock.render.parts.owner import owner


def worker_budget(cluster: ClusterInputs) -> Json:
    """A budget that forbids each eviction of a worker with a job.

    A SlurmCluster has no number of pods that Kubernetes reads, so none is counted.
    """
    return disruption_budget(
        names.worker_budget(cluster.name),
        cluster.namespace,
        {app_labels.APP_INSTANCE: cluster.name, labels.POD_PROTECT: app_labels.TRUE},
        owner(cluster.cluster),
        counted=False,
        labels=labels.object_labels("worker", cluster.name),
    )
