"""Keys and values of Slinky's API on objects, pods and in Slurm itself: they must never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.api.cluster import labels as app_labels
from penstock.catalog.marks import kubernetes, slinky

# Workers: what users and other tools ask of one pod.
POD_CORDON: Final = slinky.POD_CORDON.key
POD_CORDON_SHORT: Final = slinky.POD_CORDON_SHORT.key
POD_CORDON_KEYS: Final = (POD_CORDON, POD_CORDON_SHORT)
POD_DELETION_COST: Final = slinky.POD_DELETION_COST.key
POD_DEADLINE: Final = slinky.POD_DEADLINE.key

# Kubernetes nodes: what administrators ask of one.
NODE_CORDON_REASON: Final = slinky.NODE_CORDON_REASON.key
HOSTNAME_OVERRIDE: Final = slinky.HOSTNAME_OVERRIDE.key
TOPOLOGY: Final = slinky.TOPOLOGY.key
FEATURES: Final = slinky.FEATURES.key

# Labels of generated objects.
COMPONENT: Final = slinky.COMPONENT.key
CLUSTER: Final = slinky.CLUSTER.key
CONTROLLER_ACTIVE: Final = slinky.CONTROLLER_ACTIVE.key
POD_NAME: Final = slinky.POD_NAME.key
POD_INDEX: Final = slinky.POD_INDEX.key
POD_HOSTNAME: Final = slinky.POD_HOSTNAME.key
SCALING_MODE: Final = slinky.SCALING_MODE.key
POD_PROTECT: Final = slinky.POD_PROTECT.key
REVISION_HASH: Final = slinky.REVISION_HASH.key
FORMER_REVISION_HASH: Final = kubernetes.REVISION.key

# Annotations of generated pods.
SLURM_KEY_HASH: Final = slinky.SLURM_KEY_HASH.key
JWT_KEY_HASH: Final = slinky.JWT_KEY_HASH.key
SLURM_CONFIG_HASH: Final = slinky.SLURM_CONFIG_HASH.key
SLURMDBD_CONF_HASH: Final = slinky.SLURMDBD_CONF_HASH.key
SSHD_CONF_HASH: Final = slinky.SSHD_CONF_HASH.key
SSSD_CONF_HASH: Final = slinky.SSSD_CONF_HASH.key
SSH_HOST_KEYS_HASH: Final = slinky.SSH_HOST_KEYS_HASH.key

RESTART_TRIGGER: Final = slinky.RESTART_TRIGGER.key
RESERVATION_FINALIZER: Final = slinky.RESERVATION_FINALIZER.key
WORKER_TAINT: Final = slinky.WORKER_TAINT.key
NODE_STATE_PREFIX: Final = "SlurmNodeState"
"""Types of pod conditions that show the Slurm node's state begin with it."""

# Marks in Slurm itself.
REASON_PREFIX: Final = "slurm-operator: "
"""A drain reason that begins with it is ours; any other one belongs to somebody else."""
RESERVATION_PREFIX: Final = "SlurmOperatorMaint-"
COMMENT_NAMESPACE: Final = "namespace"
COMMENT_POD: Final = "podName"
COMMENT_NODE: Final = "node"
COMMENT_NODESET: Final = "nodeSetName"
COMMENT_NODESET_UID: Final = "nodeSetUID"


def worker_labels(nodeset: str, cluster: str) -> dict[str, str]:
    """Labels that all worker pods of a NodeSet have; `cluster` is its Controller's name."""
    return {**app_labels.labels("slurmd", nodeset), CLUSTER: cluster, COMPONENT: "slurmd"}


def revision_hash(labels: Mapping[str, str]) -> str | None:
    """Hash of the template that a worker pod was made from; None without a label that has it."""
    found = labels.get(REVISION_HASH)
    return labels.get(FORMER_REVISION_HASH) if found is None else found


def pod_cordoned(annotations: dict[str, str]) -> bool:
    """Whether a pod's annotations ask for a drain, in either spelling."""
    return any(annotations.get(key) == app_labels.TRUE for key in POD_CORDON_KEYS)
