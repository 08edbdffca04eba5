"""Reasons of events, and reasons of planned actions that emit no event of their own."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Event(StrEnum):
    """Reasons of events. The name is API. `type_` is Normal, Warning, or either of them.

    A condition that becomes abnormal emits an event of type Warning as well, with its reason.
    """

    _value_: str
    type_: str
    meaning: str

    def __new__(cls, name: str, type_: str, meaning: str) -> Self:
        """Create a member whose value is the name."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.type_ = type_
        member.meaning = meaning
        return member

    CREATE_SUCCEEDED = "CreateSucceeded", "Normal", "The operator created an object."
    UPDATE_SUCCEEDED = (
        "UpdateSucceeded",
        "Normal",
        "The operator changed an object; the event names the fields.",
    )
    DELETE_SUCCEEDED = "DeleteSucceeded", "Normal", "The operator deleted an object."
    SUCCESSFUL_CREATE = "SuccessfulCreate", "Normal", "The pod or PVC of a worker was created."
    SUCCESSFUL_DELETE = (
        "SuccessfulDelete",
        "Normal",
        "The pod of a worker was deleted; the event has the ground on which no job is lost.",
    )
    POD_REPLACED = (
        "PodReplaced",
        "Normal",
        "A pod of a daemon was deleted, and its workload creates it again.",
    )
    POD_ADOPTED = "PodAdopted", "Normal", "A worker's pod of another operator was taken over."
    STATEFUL_SET_RELEASED = (
        "StatefulSetReleased",
        "Normal",
        "A StatefulSet of another operator was deleted without its pods.",
    )
    TAKEN_OVER = "TakenOver", "Normal", "The Secret of a Token was taken over."
    FIELDS_SET_BACK = (
        "FieldsSetBack",
        "Warning",
        "A field manager overwrote a field that another one owns.",
    )
    DELETION_WAITS = (
        "DeletionWaits",
        "Normal",
        "A deleted RestApi stays until the workers of its cluster are drained.",
    )
    KEY_KEPT = "KeyKept", "Normal", "The Secret of a key stays when its owner is deleted."
    KEY_RESTORED = (
        "KeyRestored",
        "Warning",
        "The Secret of a working SlurmCluster's key was deleted, and has its key again.",
    )
    KEY_CHANGING = "KeyChanging", "Normal", "A key rotation does its next step."
    KEY_CHANGED = "KeyChanged", "Normal", "A key rotation is done."
    KEY_STEP_TAKEN_BACK = (
        "KeyStepTakenBack",
        "Warning",
        "A step of a key rotation was taken back and is tried again.",
    )
    REGISTERING = (
        "Registering",
        "Normal",
        "slurmctld was reconfigured, so that it registers with slurmdbd.",
    )
    REGISTRATION_FAILED = (
        "RegistrationFailed",
        "Warning",
        "slurmctld was not reconfigured, which registers it with slurmdbd.",
    )
    SLURMCTLD_ACTIVE = "SlurmctldActive", "Normal", "Another slurmctld of the cluster is active."
    CONFIG_DELIVERED = (
        "ConfigDelivered",
        "Normal",
        "slurmctld or slurmdbd runs with the changed configuration.",
    )
    TRIGGER_DONE = "TriggerDone", "Normal", "A requested reconfigure or restart is done."
    TRIGGER_REFUSED = (
        "TriggerRefused",
        "Warning",
        "A requested reconfigure or restart is not possible.",
    )
    PARTITION_UPDATED = "PartitionUpdated", "Normal", "Partitions were changed in slurmctld."
    PARTITION_KEYS_GONE = (
        "PartitionKeysGone",
        "Normal",
        "Parameters of a partition were removed; Slurm's defaults apply.",
    )
    PARTITION_DRIFTED = "PartitionDrifted", "Warning", "A partition was changed in Slurm itself."
    PARTITION_REVERTED = (
        "PartitionReverted",
        "Normal or Warning",
        "A partition's change in Slurm itself was reverted.",
    )
    PARTITION_ADOPTED = (
        "PartitionAdopted",
        "Normal",
        "A partition's change in Slurm itself was written into its declaration.",
    )
    NODES_DRIFTED = "NodesDrifted", "Warning", "Nodes were changed in Slurm itself."
    NODES_REVERTED = "NodesReverted", "Normal", "Changes of nodes in Slurm itself were reverted."
    NODES_ADOPTED = (
        "NodesAdopted",
        "Normal",
        "Changes of nodes in Slurm itself were written into the declaration.",
    )
    ROLLED_BACK = "RolledBack", "Normal", "A recorded template is declared again, as requested."
    ROLLBACK_IMPOSSIBLE = "RollbackImpossible", "Warning", "A requested rollback is not possible."
    SLURM_REFUSED = (
        "SlurmRefused",
        "Warning",
        "slurmctld rejected a change of a node or reservation.",
    )
    SCALE_IN = "ScaleIn", "Normal", "A Slurm node is drained, as its pod is scaled in."
    ROLLING_UPDATE = "RollingUpdate", "Normal", "A Slurm node is drained for an update of its pod."
    POD_CORDON = "PodCordon", "Normal", "A Slurm node is drained, as a user cordoned its pod."
    NODE_CORDON = (
        "NodeCordon",
        "Normal",
        "A Slurm node is drained, as its Kubernetes node is unschedulable.",
    )
    NODE_SET_DELETION = (
        "NodeSetDeletion",
        "Normal",
        "A Slurm node is drained, as its NodeSet is being deleted.",
    )
    SLURM_CLUSTER_DELETION = (
        "SlurmClusterDeletion",
        "Normal",
        "A Slurm node is drained, as its SlurmCluster is being deleted.",
    )
    NODE_SET_DRAINED = (
        "NodeSetDrained",
        "Normal",
        "The last pod of a deleted NodeSet is gone, and its finalizer with it.",
    )
    SLURM_CLUSTER_DRAINED = (
        "SlurmClusterDrained",
        "Normal",
        "The last worker of a deleted SlurmCluster is gone, and its finalizer with it.",
    )
    UNDRAINED = "Undrained", "Normal", "A Slurm node is undrained: no drain request remains."
    DRAIN_RESTORED = (
        "DrainRestored",
        "Normal",
        "A Slurm node has an administrator's drain again, after its pod was replaced.",
    )
    NODE_RESUMED = "NodeResumed", "Normal", "A Slurm node that was DOWN is resumed."
    NODE_REGISTERED = (
        "SlurmNodeRegistered",
        "Normal",
        "A worker registered again, as Slurm had no record of it.",
    )
    NODE_CHANGED = (
        "SlurmNodeChanged",
        "Normal",
        "Parameters of a Slurm node changed without a restart.",
    )
    NODE_WITHOUT_POD = "SlurmNodeWithoutPod", "Normal", "A Slurm node without a pod is drained."
    NODE_RECORD_DELETED = (
        "SlurmNodeRecordDeleted",
        "Normal",
        "A Slurm node without a pod was deleted.",
    )
    NODE_PRUNED = (
        "DefunctSlurmNodePruned",
        "Normal",
        "A Slurm node was deleted, as its Kubernetes node is gone.",
    )
    FEATURES_CHANGED = (
        "SlurmFeaturesChanged",
        "Normal",
        "A Slurm node has the features of its Kubernetes node.",
    )
    TOPOLOGY_CHANGED = (
        "SlurmTopologyChanged",
        "Normal",
        "A Slurm node has the topology of its Kubernetes node.",
    )
    RESERVATION_CREATED = (
        "ReservationCreated",
        "Normal",
        "The reservation of a scheduled update was created.",
    )
    RESERVATION_UPDATED = (
        "ReservationUpdated",
        "Normal",
        "The reservation of a scheduled update has other nodes.",
    )
    RESERVATION_DELETED = (
        "ReservationDeleted",
        "Normal",
        "The reservation of a scheduled update was deleted.",
    )
    RESERVATION_GONE = (
        "ReservationGone",
        "Normal",
        "There is no reservation any more, and the finalizer goes.",
    )
    RESERVATION_LEFT = (
        "ReservationLeft",
        "Normal",
        "A reservation may stay in Slurm, as nobody can be asked to delete it.",
    )
    NODE_OUT_OF_SERVICE = (
        "NodeOutOfService",
        "Normal",
        "A Kubernetes node is cordoned and its workers leave, as a condition of it asks.",
    )
    NODE_REBOOT_ALLOWED = (
        "NodeRebootAllowed",
        "Normal",
        "No worker is on the Kubernetes node any more: its rebooter may reboot it.",
    )
    NODE_REBOOTED = "NodeRebooted", "Normal", "A requested reboot of a Kubernetes node is done."
    NODE_IN_SERVICE = (
        "NodeInService",
        "Normal",
        "A Kubernetes node has workers again; a cordon of the operator is removed.",
    )
    MACHINE_REPLACED = (
        "MachineReplaced",
        "Normal",
        "A step of the replacement of a Kubernetes node's machine is done.",
    )
    MACHINE_NOT_REPLACED = (
        "MachineNotReplaced",
        "Warning",
        "The machine of a Kubernetes node is not replaced, for the cause in the event.",
    )
    NODE_WAITS = (
        "NodeOutageWaits",
        "Normal",
        "A requested reboot or drain of a Kubernetes node waits for the cause in the event.",
    )
    NODE_OUTAGE_BLOCKED = (
        "NodeOutageBlocked",
        "Warning",
        "A requested reboot or drain of a Kubernetes node needs a person.",
    )
    NODE_EVICTION = (
        "NodeEviction",
        "Normal",
        "A drained worker is deleted, as its Kubernetes node is out of service.",
    )
    CHECK_DRAINED = (
        "CheckDrained",
        "Warning",
        "A Slurm node is drained, as a job of a check failed on it.",
    )
    CHECK_POSTPONED = (
        "CheckPostponed",
        "Warning",
        "A Slurm node is not drained although a job of a check failed on it: checks have drained "
        "as many as they may.",
    )
    CHECK_UNDRAINED = (
        "CheckUndrained",
        "Normal",
        "A Slurm node is undrained, as the check that drained it passed on it.",
    )
    CHECK_COMMENTED = (
        "CheckCommented",
        "Normal",
        "The comment of a Slurm node is set or removed, by a reaction of a check.",
    )
    CHECK_RESERVED = (
        "CheckReserved",
        "Warning",
        "A Slurm node is reserved, by a reaction of a check.",
    )
    CHECK_RELEASED = (
        "CheckReleased",
        "Normal",
        "The reservation of a Slurm node is deleted, by a reaction of a check.",
    )
    POWER_STATE_CORRECTED = (
        "PowerStateCorrected",
        "Normal",
        "spec.activeNodes follows the nodes that slurmctld powers up or down.",
    )
    NOT_DELIVERED = (
        "NotDelivered",
        "Warning",
        "sconfigcontroller cannot write the configuration of the cluster into its jail.",
    )


class ActionReason(StrEnum):
    """Reasons of planned actions, whose events have others, such as SuccessfulDelete."""

    CREATE_POD = "CreatePod"
    CREATE_PVCS = "CreateClaims"
    POD_ENDED = "PodEnded"
    OLD_REVISION = "OldRevision"
    NODE_FORGOTTEN = "SlurmNodeForgotten"
    NOT_REBOOTED = "NotRebooted"


def deletion_of(kind: str) -> str:
    """The reason of events about nodes that are drained for the deletion of an object."""
    return f"{kind}Deletion"


def drained(kind: str) -> str:
    """The reason of the event about a deleted object whose pods are all gone."""
    return f"{kind}Drained"
