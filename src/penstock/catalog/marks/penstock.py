"""Marks of Penstock itself, on objects of any API group."""

from __future__ import annotations

from typing import Final

from penstock.catalog.mark import OPERATOR, USER, Mark

ROLLBACK: Final = Mark(
    "nodeset.penstock.dev/rollback-to",
    "annotation",
    "NodeSet",
    USER,
    "Each new value has the template of that recorded revision declared again, once.",
)
ROLLED_BACK: Final = Mark(
    "nodeset.penstock.dev/rolled-back-to",
    "annotation",
    "NodeSet",
    OPERATOR,
    "The value of rollback-to that was done, or reported to be impossible.",
)
RECONFIGURE: Final = Mark(
    "controller.penstock.dev/reconfigure",
    "annotation",
    "Controller, SlurmCluster; slurmctld pod",
    USER,
    "Each new value has slurmctld reconfigured once. The operator writes the value to the pod.",
)
RESTART: Final = Mark(
    "controller.penstock.dev/restart",
    "annotation",
    "Controller, SlurmCluster",
    USER,
    "Each new value (`slurmctld` or `slurmctld@TEXT`) has slurmctld restarted once.",
)
DRIFT: Final = Mark(
    "penstock.dev/drift",
    "annotation",
    "Controller, NodeSet, SlurmCluster",
    USER,
    "What becomes of changes in Slurm itself: `Report` (default), `Revert` or `Adopt`.",
)
ADOPTED_PODS: Final = Mark(
    "penstock.dev/adopted-pods",
    "annotation",
    "Accounting, Controller, LoginSet, NodeConfigurator, RestApi, SlurmCluster",
    USER,
    "`Replace` has pods that another operator created replaced now.",
)
MAX_DRAINED: Final = Mark(
    "check.penstock.dev/max-drained",
    "annotation",
    "SlurmCluster",
    USER,
    "How many Slurm nodes checks may have drained at a time: a number from 1, or a percentage "
    "(`10%` by default, at least one).",
)
REPLACE_NODES: Final = Mark(
    "node.penstock.dev/replace",
    "annotation",
    "SlurmCluster",
    USER,
    "How many machines of its workers may be replaced within an hour: a number from 1, or a "
    "percentage of its Slurm nodes (at least one). None without the annotation.",
)
REPLACEMENTS: Final = Mark(
    "node.penstock.dev/replacements",
    "annotation",
    "SlurmCluster",
    OPERATOR,
    "Which machines are being replaced, and which were: JSON.",
)
OWN_DRAIN: Final = Mark(
    "nodeset.penstock.dev/drain",
    "annotation",
    "worker pod of a SlurmCluster",
    USER,
    "`true` has the Slurm node of the pod drained.",
)
OWN_DEADLINE: Final = Mark(
    "nodeset.penstock.dev/deadline",
    "annotation",
    "worker pod of a SlurmCluster",
    OPERATOR,
    "Until when jobs may run on the pod's node (RFC 3339).",
)
OWN_PROTECT: Final = Mark(
    "nodeset.penstock.dev/pod-protect",
    "label",
    "worker pod of a SlurmCluster",
    OPERATOR,
    "`true`: the pod has a job and is not evicted.",
)
CORDONED_FOR: Final = Mark(
    "nodeset.penstock.dev/cordoned-for",
    "annotation",
    "worker pod",
    OPERATOR,
    "Why the operator cordoned the pod. A cordon without it is the user's and stays.",
)
SAME_REVISIONS: Final = Mark(
    "nodeset.penstock.dev/same-revisions",
    "annotation",
    "ControllerRevision",
    OPERATOR,
    "Hashes, separated by commas, that others gave the same template.",
)
ADOPTED_REVISION: Final = Mark(
    "penstock.dev/adopted-revision",
    "annotation",
    "worker pod",
    OPERATOR,
    "The hash of its template that another operator gave the pod.",
)
ADOPTED_TEMPLATE: Final = Mark(
    "penstock.dev/adopted-template",
    "annotation",
    "StatefulSet, Deployment",
    OPERATOR,
    "Hash of the desired pods of an adopted workload; `replacing`, then `replaced` afterwards.",
)
CONFIG_HASH: Final = Mark(
    "controller.penstock.dev/config-hash",
    "annotation",
    "pods with configuration files",
    OPERATOR,
    "Hash of the configuration; a change makes the kubelet refresh the files.",
)
CONFIG_CANDIDATE: Final = Mark(
    "controller.penstock.dev/config-candidate",
    "annotation",
    "slurmctld pod",
    OPERATOR,
    "Hash of the configuration that its reconfigure container is to try.",
)
CONFIG_LIVE: Final = Mark(
    "controller.penstock.dev/config-live",
    "annotation",
    "slurmctld pod",
    OPERATOR,
    "Hash of the configuration that needs no reconfigure.",
)
CONFIG_RESTART: Final = Mark(
    "controller.penstock.dev/config-restart",
    "annotation",
    "slurmctld pod",
    OPERATOR,
    "Hash of the configuration that takes effect by a restart only.",
)
CONFIG_REFUSED: Final = Mark(
    "controller.penstock.dev/config-refused",
    "annotation",
    "ConfigMap with slurm.conf",
    OPERATOR,
    "Hashes of a configuration with which slurmctld did not come up, a blank, and its words.",
)
CONFIG_DELIVERED_TO: Final = Mark(
    "controller.penstock.dev/config-delivered-to",
    "annotation",
    "slurmctld pod",
    OPERATOR,
    "Restart count of the container when config-hash was changed.",
)
CONFIG_REFRESH: Final = Mark(
    "controller.penstock.dev/config-refresh",
    "annotation",
    "slurmctld pod, slurmdbd pod",
    OPERATOR,
    "A change makes the kubelet refresh the files once more.",
)
TRIES_CONFIG: Final = Mark(
    "controller.penstock.dev/tries-config",
    "annotation",
    "slurmctld pod",
    OPERATOR,
    "Its reconfigure container is Penstock's own.",
)
CONTENT_HASH: Final = Mark(
    "controller.penstock.dev/content-hash",
    "annotation",
    "ConfigMap with slurm.conf",
    OPERATOR,
    "Hash of its data; another one shows an edit by somebody else.",
)
METRICS: Final = Mark(
    "controller.penstock.dev/metrics",
    "label",
    "Service of slurmctld",
    OPERATOR,
    "On the one Service by which monitoring is to find slurmctld.",
)
SLURMDBD: Final = Mark(
    "controller.penstock.dev/slurmdbd",
    "annotation",
    "slurmrestd pod",
    OPERATOR,
    "Host and port of slurmdbd, which slurmrestd reads only at its start.",
)
JWKS_HASH: Final = Mark(
    "penstock.dev/jwks-hash",
    "annotation",
    "slurmdbd pod",
    OPERATOR,
    "Hash of the JWKS file, which is read once.",
)
SSSD_HASH: Final = Mark(
    "penstock.dev/sssd-hash",
    "annotation",
    "slurmctld pod, login pod",
    OPERATOR,
    "Hash of the files that sssd beside the daemon reads.",
)
DATABASE_PASSWORD_HASH: Final = Mark(
    "penstock.dev/database-password-hash",
    "annotation",
    "pod of the embedded database",
    OPERATOR,
    "Hash of the password, which is read once.",
)
KEY_RING: Final = Mark(
    "penstock.dev/key-ring",
    "annotation",
    "slurmctld pod, worker pod, login pod of a SlurmCluster",
    OPERATOR,
    "The pod shows several keys of auth/slurm when there are any.",
)
SLURM_KEY_HASH: Final = Mark(
    "penstock.dev/slurm-key-hash",
    "annotation",
    "slurmdbd pod of a SlurmCluster",
    OPERATOR,
    "Which key of auth/slurm slurmdbd begins with; a change replaces the pod.",
)
KEYS: Final = Mark(
    "penstock.dev/keys",
    "annotation",
    "worker pod, any pod with munged, slurmctld and login pod with auth/slurm",
    OPERATOR,
    "Which keys the pod is to show; a change makes the kubelet refresh them.",
)
JAIL_TEMPLATE: Final = Mark(
    "jail.penstock.dev/template",
    "annotation",
    "Job that fills the jail",
    OPERATOR,
    "Hash of the declared fields from which it was created.",
)
JAIL_MODE: Final = Mark(
    "jail.penstock.dev/maintenance",
    "annotation",
    "Job that fills the jail",
    OPERATOR,
    "spec.maintenance when it was created.",
)
DRAIN_FINALIZER: Final = Mark(
    "nodeset.penstock.dev/drain",
    "finalizer",
    "NodeSet, SlurmCluster",
    OPERATOR,
    "Keeps a deleted object until its nodes are drained and its pods are gone.",
)
OWN_RESERVATION: Final = Mark(
    "nodeset.penstock.dev/reservation",
    "finalizer",
    "NodeSet, SlurmCluster",
    OPERATOR,
    "Keeps a deleted object until its maintenance reservation is deleted.",
)
ASK_FINALIZER: Final = Mark(
    "restapi.penstock.dev/drain",
    "finalizer",
    "RestApi",
    OPERATOR,
    "Keeps a deleted RestApi while workers of its cluster are drained.",
)
SLURMD_FAILING: Final = Mark(
    "penstock.dev/SlurmdFailing",
    "pod condition",
    "worker pod",
    OPERATOR,
    "slurmd ends again and again; the message has its last words.",
)
CHECK_RESULTS: Final = Mark(
    "check.penstock.dev/results",
    "annotation",
    "Job of a check",
    OPERATOR,
    "How each of its Slurm jobs ended, and where it ran. slurmctld forgets them.",
)
OUT_OF_SERVICE: Final = Mark(
    "node.penstock.dev/out-of-service",
    "annotation",
    "Kubernetes node",
    OPERATOR,
    "Why the operator cordoned the node, and how far it is. A cordon without it is the user's.",
)
REBOOT_STARTED: Final = Mark(
    "node.penstock.dev/reboot-started",
    "annotation",
    "Kubernetes node",
    OPERATOR,
    "The boot ID at which the rebooter ran its command.",
)
REBOOT_DONE: Final = Mark(
    "node.penstock.dev/reboot-done",
    "annotation",
    "Kubernetes node",
    OPERATOR,
    "The request that was answered by a reboot, and the boot ID since: it is not answered again.",
)
CHECK_POSTPONED: Final = Mark(
    "check.penstock.dev/postponed",
    "annotation",
    "Job of a check",
    OPERATOR,
    "Slurm nodes on which a job failed, and which are drained once fewer are drained by checks.",
)
STOPPED: Final = Mark(
    "penstock.dev/stopped",
    "annotation",
    "SlurmCluster",
    USER,
    "Who stopped the cluster. While it is there, the cluster has no pods, and nothing fills its "
    "jail. A Restore writes and removes its own.",
)
RESTORE_FINALIZER: Final = Mark(
    "penstock.dev/restore",
    "finalizer",
    "Restore",
    OPERATOR,
    "Keeps a deleted Restore until its Job is gone and its cluster starts again.",
)
BACKUP: Final = Mark(
    "penstock.dev/backup",
    "label",
    "CronJob, Job and pods of a Backup",
    OPERATOR,
    "Name of the Backup.",
)
RESTORE: Final = Mark(
    "penstock.dev/restore",
    "label",
    "Job and pods of a Restore",
    OPERATOR,
    "Name of the Restore.",
)
JAIL_UPGRADE: Final = Mark(
    "penstock.dev/jail-upgrade",
    "label",
    "Jobs and pods of a JailUpgrade",
    OPERATOR,
    "Name of the JailUpgrade.",
)
MARKS: Final = (
    ROLLBACK,
    ROLLED_BACK,
    RECONFIGURE,
    RESTART,
    DRIFT,
    ADOPTED_PODS,
    MAX_DRAINED,
    REPLACE_NODES,
    REPLACEMENTS,
    OWN_DRAIN,
    OWN_DEADLINE,
    OWN_PROTECT,
    CORDONED_FOR,
    SAME_REVISIONS,
    ADOPTED_REVISION,
    ADOPTED_TEMPLATE,
    CONFIG_HASH,
    CONFIG_CANDIDATE,
    CONFIG_LIVE,
    CONFIG_RESTART,
    CONFIG_REFUSED,
    CONFIG_DELIVERED_TO,
    CONFIG_REFRESH,
    TRIES_CONFIG,
    CONTENT_HASH,
    METRICS,
    SLURMDBD,
    JWKS_HASH,
    SSSD_HASH,
    DATABASE_PASSWORD_HASH,
    KEY_RING,
    SLURM_KEY_HASH,
    KEYS,
    JAIL_TEMPLATE,
    JAIL_MODE,
    DRAIN_FINALIZER,
    OWN_RESERVATION,
    ASK_FINALIZER,
    SLURMD_FAILING,
    CHECK_RESULTS,
    OUT_OF_SERVICE,
    REBOOT_STARTED,
    REBOOT_DONE,
    CHECK_POSTPONED,
    STOPPED,
    RESTORE_FINALIZER,
    BACKUP,
    RESTORE,
    JAIL_UPGRADE,
)
