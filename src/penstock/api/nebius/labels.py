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
CONTROLLER_TYPE: Final = f"{GROUP}/controller-type"
MAIN: Final = "main"
"""Of CONTROLLER_TYPE: the pod of slurmctld."""
ROLLING_UPDATE: Final = f"{GROUP}/rolling-update-enabled"
"""On workers of a NodeSet: whether its update strategy is slurmAwareRollingUpdate."""
PART_OF: Final = "app.kubernetes.io/part-of"
OPERATOR: Final = "slurm-operator"
"""Of part-of and managed-by: users and dashboards find the objects by it."""
JAILED_AGGREGATION: Final = f"{GROUP}/jailed-aggregation"
"""On JailedConfigs that are one group: one reconfigure follows the changes of all of them."""
COMMON: Final = "common"
"""Of JAILED_AGGREGATION: the group of the operator's own files."""
POD_PROTECT: Final = "nodeset.penstock.dev/pod-protect"
"""On a worker pod: it has a job and is not evicted."""
REVISION: Final = "controller-revision-hash"
"""On a worker pod: hash of its template, as pods of a StatefulSet have it."""


def selector_labels(component: str, cluster: str) -> dict[str, str]:
    """What a Service or workload selects by."""
    return {
        app_labels.APP_NAME: NAME,
        app_labels.APP_INSTANCE: cluster,
        app_labels.APP_COMPONENT: component,
    }


def object_labels(component: str, cluster: str) -> dict[str, str]:
    """Labels of each object of a component."""
    return {
        **selector_labels(component, cluster),
        PART_OF: OPERATOR,
        app_labels.MANAGED_BY: OPERATOR,
    }


def node_set_selector(node_set: str, cluster: str) -> dict[str, str]:
    """What selects the workers of a NodeSet."""
    return {**selector_labels("nodeset", cluster), NODE_SET: node_set}
