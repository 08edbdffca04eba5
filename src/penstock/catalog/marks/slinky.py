"""Marks of the API group slinky.slurm.net."""

from __future__ import annotations

from typing import Final

from penstock.catalog.mark import OPERATOR, USER, Mark

POD_CORDON: Final = Mark(
    "nodeset.slinky.slurm.net/pod-cordon",
    "annotation",
    "worker pod",
    USER,
    "`true` has the Slurm node of the pod drained.",
)
POD_CORDON_SHORT: Final = Mark(
    "slinky.slurm.net/pod-cordon",
    "annotation",
    "worker pod",
    USER,
    "Older spelling of pod-cordon; a node is undrained only when both are gone.",
)
POD_DELETION_COST: Final = Mark(
    "nodeset.slinky.slurm.net/pod-deletion-cost",
    "annotation",
    "worker pod",
    USER,
    "A whole number of 32 bits: the pod with the lower one is deleted first.",
)
POD_DEADLINE: Final = Mark(
    "nodeset.slinky.slurm.net/pod-deadline",
    "annotation",
    "worker pod",
    OPERATOR,
    "Until when jobs may run on the pod's node (RFC 3339).",
)
NODE_CORDON_REASON: Final = Mark(
    "nodeset.slinky.slurm.net/node-cordon-reason",
    "annotation",
    "Kubernetes node",
    USER,
    "Text for the reason of drains while the Kubernetes node is unschedulable.",
)
HOSTNAME_OVERRIDE: Final = Mark(
    "nodeset.slinky.slurm.net/hostname-override",
    "annotation",
    "Kubernetes node",
    USER,
    "Name of the Slurm node of the pod there, with scalingMode DaemonSet.",
)
TOPOLOGY: Final = Mark(
    "topology.slinky.slurm.net/spec",
    "annotation",
    "Kubernetes node; worker pod",
    USER,
    "Topology of the Slurm nodes there, as `Topology=` has it. The operator copies it to pods.",
)
FEATURES: Final = Mark(
    "features.slinky.slurm.net/spec",
    "annotation",
    "Kubernetes node",
    USER,
    "Features of the Slurm nodes there, separated by commas; they get the prefix `k8s/`.",
)
RESTART_TRIGGER: Final = Mark(
    "restart-trigger",
    "annotation",
    "Controller",
    USER,
    "Each new value restarts slurmctld.",
)
COMPONENT: Final = Mark(
    "slinky.slurm.net/component",
    "label",
    "worker pod",
    OPERATOR,
    "Older label with the daemon's name.",
)
CLUSTER: Final = Mark(
    "slinky.slurm.net/cluster",
    "label",
    "worker pod",
    OPERATOR,
    "Name of the Controller.",
)
CONTROLLER_ACTIVE: Final = Mark(
    "controller.slinky.slurm.net/active",
    "label",
    "slurmctld pod",
    OPERATOR,
    "`true` on the slurmctld that works; Services select by it.",
)
POD_NAME: Final = Mark(
    "nodeset.slinky.slurm.net/pod-name",
    "label",
    "worker pod",
    OPERATOR,
    "Name of the pod.",
)
POD_INDEX: Final = Mark(
    "nodeset.slinky.slurm.net/pod-index",
    "label",
    "worker pod",
    OPERATOR,
    "Ordinal of the pod.",
)
POD_HOSTNAME: Final = Mark(
    "nodeset.slinky.slurm.net/pod-hostname",
    "label",
    "worker pod",
    OPERATOR,
    "Name of its Slurm node.",
)
SCALING_MODE: Final = Mark(
    "nodeset.slinky.slurm.net/scaling-mode",
    "label",
    "worker pod",
    OPERATOR,
    "StatefulSet or DaemonSet.",
)
POD_PROTECT: Final = Mark(
    "nodeset.slinky.slurm.net/pod-protect",
    "label",
    "worker pod",
    OPERATOR,
    "`true` while the pod has jobs; a PodDisruptionBudget selects by it.",
)
REVISION_HASH: Final = Mark(
    "controller.kubernetes.io/hash",
    "label",
    "worker pod, ControllerRevision",
    OPERATOR,
    "Hash of the template that the pod is created from.",
)
SLURM_KEY_HASH: Final = Mark(
    "slinky.slurm.net/slurm-key-hash",
    "annotation",
    "pods with slurm.key",
    OPERATOR,
    "Hash of slurm.key; a change replaces the pod.",
)
JWT_KEY_HASH: Final = Mark(
    "slinky.slurm.net/jwt-key-hash",
    "annotation",
    "pods with the JWT key",
    OPERATOR,
    "Hash of the JWT key; a change replaces the pod.",
)
SLURM_CONFIG_HASH: Final = Mark(
    "slinky.slurm.net/slurm-config-hash",
    "annotation",
    "slurmrestd pod",
    OPERATOR,
    "Hash of what slurmrestd reads of slurm.conf.",
)
SLURMDBD_CONF_HASH: Final = Mark(
    "slinky.slurm.net/slurmdbd-conf-hash",
    "annotation",
    "slurmdbd pod",
    OPERATOR,
    "Hash of slurmdbd.conf.",
)
SSHD_CONF_HASH: Final = Mark(
    "slinky.slurm.net/sshd-conf-hash",
    "annotation",
    "login pod, worker pod",
    OPERATOR,
    "Hash of the files of sshd.",
)
SSSD_CONF_HASH: Final = Mark(
    "slinky.slurm.net/sssd-conf-hash",
    "annotation",
    "login pod, worker pod",
    OPERATOR,
    "Hash of sssd.conf.",
)
SSH_HOST_KEYS_HASH: Final = Mark(
    "slinky.slurm.net/ssh-host-keys-hash",
    "annotation",
    "login pod",
    OPERATOR,
    "Hash of the host keys of ssh.",
)
RESERVATION_FINALIZER: Final = Mark(
    "nodeset.slinky.slurm.net/reservation",
    "finalizer",
    "NodeSet",
    OPERATOR,
    "Keeps a deleted NodeSet until its maintenance reservation is deleted.",
)
WORKER_TAINT: Final = Mark(
    "nodeset.slinky.slurm.net/worker",
    "taint",
    "Kubernetes node",
    USER,
    "Keeps other pods off the Kubernetes nodes of workers, which tolerate it.",
)
MARKS: Final = (
    POD_CORDON,
    POD_CORDON_SHORT,
    POD_DELETION_COST,
    POD_DEADLINE,
    NODE_CORDON_REASON,
    HOSTNAME_OVERRIDE,
    TOPOLOGY,
    FEATURES,
    RESTART_TRIGGER,
    COMPONENT,
    CLUSTER,
    CONTROLLER_ACTIVE,
    POD_NAME,
    POD_INDEX,
    POD_HOSTNAME,
    SCALING_MODE,
    POD_PROTECT,
    REVISION_HASH,
    SLURM_KEY_HASH,
    JWT_KEY_HASH,
    SLURM_CONFIG_HASH,
    SLURMDBD_CONF_HASH,
    SSHD_CONF_HASH,
    SSSD_CONF_HASH,
    SSH_HOST_KEYS_HASH,
    RESERVATION_FINALIZER,
    WORKER_TAINT,
)
