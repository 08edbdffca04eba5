"""Labels of `slurm.nebius.ai` and of the objects that a SlurmCluster or NodeSet owns."""

from __future__ import annotations

from typing import Final

from penstock.api.cluster import labels as app_labels
from penstock.catalog.marks import kubernetes, nebius
from penstock.catalog.marks import penstock as own

NAME: Final = "slurmcluster"
"""app.kubernetes.io/name of each object."""
WORKER: Final = nebius.WORKER.key
NODE_SET: Final = nebius.NODE_SET.key
PARENT_CLUSTER: Final = nebius.PARENT_CLUSTER.key
PROTECTED: Final = nebius.PROTECTED.key
PROTECTED_FOR: Final = nebius.PROTECTED_FOR.key
CONTROLLER_TYPE: Final = nebius.CONTROLLER_TYPE.key
MAIN: Final = "main"
"""Of CONTROLLER_TYPE: the pod of slurmctld."""
ROLLING_UPDATE: Final = nebius.ROLLING_UPDATE.key
PART_OF: Final = kubernetes.PART_OF.key
OPERATOR: Final = "slurm-operator"
"""Of part-of and managed-by: users and dashboards find the objects by it."""
JAILED_AGGREGATION: Final = nebius.JAILED_AGGREGATION.key
COMMON: Final = "common"
"""Of JAILED_AGGREGATION: the group of the operator's own files."""
CONFIGURATOR: Final = "node-configurator"
"""app.kubernetes.io/component of the pods of a NodeConfigurator."""
IS_CONFIGURATOR: Final = nebius.NODE_CONFIGURATOR.key
CHECKS: Final = "soperatorchecks"
"""app.kubernetes.io/component of the objects of checks."""
ACTIVE_CHECK: Final = nebius.ACTIVE_CHECK.key
ACTIVE_CHECK_FINALIZER: Final = nebius.ACTIVE_CHECK_FINALIZER.key
STOPPED: Final = own.STOPPED.key
POD_PROTECT: Final = own.OWN_PROTECT.key
REVISION: Final = kubernetes.REVISION.key


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


def configurator_selector(name: str) -> dict[str, str]:
    """What selects the pods of a NodeConfigurator."""
    return {**selector_labels(CONFIGURATOR, name), IS_CONFIGURATOR: app_labels.TRUE}


def node_set_selector(node_set: str, cluster: str) -> dict[str, str]:
    """What selects the workers of a NodeSet."""
    return {**selector_labels("nodeset", cluster), NODE_SET: node_set}
