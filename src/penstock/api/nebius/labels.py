"""Labels of `slurm.nebius.ai` and of the objects that a SlurmCluster or NodeSet owns."""

from __future__ import annotations

from typing import Final

from penstock.api.cluster import labels as app_labels
from penstock.api.nebius.common import GROUP

NAME: Final = "slurmcluster"
"""app.kubernetes.io/name of each object."""
WORKER: Final = f"{GROUP}/worker"
NODE_SET: Final = f"{GROUP}/nodeset"
PARENT_CLUSTER: Final = f"{GROUP}/parental-cluster-ref"
"""Annotation of a NodeSet up to version 4.1 with its SlurmCluster; `spec.clusterName` since."""
PROTECTED: Final = f"{GROUP}/webhook"
"""Label of a Secret that only the operator writes while its cluster exists."""
PROTECTED_FOR: Final = f"{GROUP}/cluster"
"""Annotation of such a Secret with its SlurmCluster."""
REVISION: Final = "controller-revision-hash"
"""On a worker pod: hash of its template, as pods of a StatefulSet have it."""


def selector_labels(component: str, cluster: str) -> dict[str, str]:
    """What a Service or workload selects by."""
    return {
        app_labels.APP_NAME: NAME,
        app_labels.APP_INSTANCE: cluster,
        app_labels.APP_COMPONENT: component,
    }


def node_set_selector(node_set: str, cluster: str) -> dict[str, str]:
    """What selects the workers of a NodeSet."""
    return {**selector_labels("nodeset", cluster), NODE_SET: node_set}
