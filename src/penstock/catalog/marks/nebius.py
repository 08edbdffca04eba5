"""Marks of the API group slurm.nebius.ai."""

from __future__ import annotations

from typing import Final

from penstock.catalog.mark import OPERATOR, USER, Mark

WORKER: Final = Mark(
    "slurm.nebius.ai/worker",
    "label",
    "worker pod",
    OPERATOR,
    "`true` on each worker of a SlurmCluster.",
)
NODE_SET: Final = Mark(
    "slurm.nebius.ai/nodeset",
    "label",
    "worker pod",
    OPERATOR,
    "Name of the NodeSet.",
)
PARENT_CLUSTER: Final = Mark(
    "slurm.nebius.ai/parental-cluster-ref",
    "annotation",
    "NodeSet",
    USER,
    "The SlurmCluster of a NodeSet up to version 4.1; spec.clusterName since.",
)
PROTECTED: Final = Mark(
    "slurm.nebius.ai/webhook",
    "label",
    "Secret",
    OPERATOR,
    "On a Secret that only the operator writes while its cluster exists.",
)
PROTECTED_FOR: Final = Mark(
    "slurm.nebius.ai/cluster",
    "annotation",
    "Secret",
    OPERATOR,
    "The SlurmCluster of such a Secret.",
)
CONTROLLER_TYPE: Final = Mark(
    "slurm.nebius.ai/controller-type",
    "label",
    "slurmctld pod",
    OPERATOR,
    "`main` on the pod of slurmctld.",
)
ROLLING_UPDATE: Final = Mark(
    "slurm.nebius.ai/rolling-update-enabled",
    "label",
    "worker pod",
    OPERATOR,
    "Whether the update strategy of its NodeSet is slurmAwareRollingUpdate.",
)
NODE_CONFIGURATOR: Final = Mark(
    "slurm.nebius.ai/node-configurator",
    "label",
    "DaemonSet of a NodeConfigurator, and its pods",
    OPERATOR,
    "`true` on each pod of a NodeConfigurator.",
)
JAILED_AGGREGATION: Final = Mark(
    "slurm.nebius.ai/jailed-aggregation",
    "label",
    "JailedConfig",
    USER,
    "JailedConfigs of one value are one group, followed by one reconfigure.",
)
ACTIVE_CHECK: Final = Mark(
    "slurm.nebius.ai/activecheck",
    "annotation",
    "check pod",
    OPERATOR,
    "The ActiveCheck of a pod.",
)
ACTIVE_CHECK_FINALIZER: Final = Mark(
    "slurm.nebius.ai/activecheck-finalizer",
    "finalizer",
    "ActiveCheck",
    OPERATOR,
    "Keeps a deleted ActiveCheck until its CronJob is deleted.",
)
SLURM_JOB_IDS: Final = Mark(
    "slurm-job-id",
    "annotation",
    "Job of a check",
    OPERATOR,
    "Ids of the Slurm jobs that the Job submitted.",
)
UNHANDLED_JOB_IDS: Final = Mark(
    "unhandled-slurm-job-id",
    "annotation",
    "Job of a check",
    OPERATOR,
    "Those of them whose result is still to come.",
)
SKIPPED_REASON: Final = Mark(
    "slurm-skipped-reason",
    "annotation",
    "Job of a check",
    OPERATOR,
    "Why the Job submitted no Slurm job.",
)
FINAL_STATE_TIME: Final = Mark(
    "soperator-checks-final-state-time",
    "annotation",
    "Job of a check",
    OPERATOR,
    "When the last of its Slurm jobs was found to have ended.",
)
MARKS: Final = (
    SLURM_JOB_IDS,
    UNHANDLED_JOB_IDS,
    SKIPPED_REASON,
    FINAL_STATE_TIME,
    ACTIVE_CHECK,
    ACTIVE_CHECK_FINALIZER,
    WORKER,
    NODE_SET,
    PARENT_CLUSTER,
    PROTECTED,
    PROTECTED_FOR,
    CONTROLLER_TYPE,
    ROLLING_UPDATE,
    NODE_CONFIGURATOR,
    JAILED_AGGREGATION,
)
