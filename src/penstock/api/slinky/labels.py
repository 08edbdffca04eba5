"""Keys and values of Slinky's API on objects, pods and in Slurm itself: they must never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.api.cluster import labels as app_labels

# Workers: what users and other tools ask of one pod.
POD_CORDON: Final = "nodeset.slinky.slurm.net/pod-cordon"
"""Exactly `"true"` on a worker pod: drain its Slurm node."""
POD_CORDON_SHORT: Final = "slinky.slurm.net/pod-cordon"
"""Older spelling of POD_CORDON; a node is undrained only when both are gone."""
POD_CORDON_KEYS: Final = (POD_CORDON, POD_CORDON_SHORT)
POD_DELETION_COST: Final = "nodeset.slinky.slurm.net/pod-deletion-cost"
"""A 32 bit number: the pod with the lower one is deleted first."""
POD_DEADLINE: Final = "nodeset.slinky.slurm.net/pod-deadline"
"""RFC 3339: until when jobs may run on the pod's node; written by the operator."""

# Kubernetes nodes: what administrators ask of one.
NODE_CORDON_REASON: Final = "nodeset.slinky.slurm.net/node-cordon-reason"
HOSTNAME_OVERRIDE: Final = "nodeset.slinky.slurm.net/hostname-override"
TOPOLOGY: Final = "topology.slinky.slurm.net/spec"
FEATURES: Final = "features.slinky.slurm.net/spec"

# Labels of generated objects.
COMPONENT: Final = "slinky.slurm.net/component"
"""Older label, whose value is the daemon's name (`slurmd`); new worker pods carry it as well."""
CLUSTER: Final = "slinky.slurm.net/cluster"
CONTROLLER_ACTIVE: Final = "controller.slinky.slurm.net/active"
POD_NAME: Final = "nodeset.slinky.slurm.net/pod-name"
POD_INDEX: Final = "nodeset.slinky.slurm.net/pod-index"
POD_HOSTNAME: Final = "nodeset.slinky.slurm.net/pod-hostname"
SCALING_MODE: Final = "nodeset.slinky.slurm.net/scaling-mode"
POD_PROTECT: Final = "nodeset.slinky.slurm.net/pod-protect"
REVISION_HASH: Final = "controller.kubernetes.io/hash"
"""On a worker pod and on its ControllerRevision: hash of the template that the pod is made from."""
FORMER_REVISION_HASH: Final = "controller-revision-hash"
"""The same on worker pods of earlier versions of Penstock. It is read, and written no more."""

# Annotations of generated pods.
SLURM_KEY_HASH: Final = "slinky.slurm.net/slurm-key-hash"
JWT_KEY_HASH: Final = "slinky.slurm.net/jwt-key-hash"
SLURM_CONFIG_HASH: Final = "slinky.slurm.net/slurm-config-hash"
SLURMDBD_CONF_HASH: Final = "slinky.slurm.net/slurmdbd-conf-hash"
SSHD_CONF_HASH: Final = "slinky.slurm.net/sshd-conf-hash"
SSSD_CONF_HASH: Final = "slinky.slurm.net/sssd-conf-hash"
SSH_HOST_KEYS_HASH: Final = "slinky.slurm.net/ssh-host-keys-hash"

RESTART_TRIGGER: Final = "restart-trigger"
"""On a Controller: any new value restarts slurmctld, as slurm-operator documents it."""
RESERVATION_FINALIZER: Final = "nodeset.slinky.slurm.net/reservation"
"""Keeps a deleted NodeSet until its maintenance reservation is deleted."""
WORKER_TAINT: Final = "nodeset.slinky.slurm.net/worker"
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
