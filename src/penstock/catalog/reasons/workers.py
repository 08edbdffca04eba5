"""Reasons about the pods of workers."""

from __future__ import annotations

from typing import Final

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason

_BY_JOBS: Final = "Wait for the jobs, or end them with scancel."


class WorkerReason(ConditionReason):
    """Reasons about pods of workers."""

    CREATING_PODS = "CreatingPods", "Pods of workers are being created.", WAIT
    PODS_NOT_AVAILABLE = (
        "PodsNotAvailable",
        "Pods are ready for less than minReadySeconds.",
        WAIT,
    )
    PODS_TERMINATING = "PodsTerminating", "Pods are terminating.", WAIT
    POD_NAME_TAKEN = (
        "PodNameTaken",
        "A pod of another owner has the name that a worker needs.",
        "Delete or rename that pod.",
        PERSON,
    )
    HOSTNAME_INVALID = (
        "HostnameInvalid",
        "The annotation for the host name of a Kubernetes node cannot be a Slurm node's name.",
        "Correct the annotation of the Kubernetes node.",
        PERSON,
    )
    NO_NODE_FITS = (
        "NoNodeFits",
        "No Kubernetes node fits the placement of the NodeSet, which may be intended.",
        "If it is not, correct nodeSelector, affinity or tolerations.",
    )
    CLAIMS_TERMINATING = (
        "ClaimsTerminating",
        "New pods wait until the PVCs of former pods are deleted.",
        WAIT,
    )
    DELETING = (
        "Deleting",
        "The NodeSet is being deleted, and its pods are drained and deleted first.",
        _BY_JOBS,
    )
    DELETION_COST_IGNORED = (
        "DeletionCostIgnored",
        "The annotation pod-deletion-cost is no whole number and counts as 0.",
        "Write a number, or remove the annotation.",
    )
    JOBS_RUNNING = "JobsRunning", "A pod to be deleted has jobs on its Slurm node.", _BY_JOBS
    NODE_BUSY = (
        "NodeBusy",
        "A pod to be deleted has a Slurm node that slurmctld reports as busy.",
        _BY_JOBS,
    )
    NOT_DRAINED = "NotDrained", "A pod to be deleted waits until Slurm has drained it.", WAIT
    NODE_UNKNOWN = (
        "NodeUnknown",
        "The Slurm node of a pod to be deleted has not registered since slurmctld started.",
        WAIT,
    )
    NODE_NOT_REGISTERED = (
        "NodeNotRegistered",
        "Slurm has no node of a pod to be deleted, and its slurmd may run jobs.",
        "Check that the pod has no jobs, then delete it by hand.",
        PERSON,
    )
    TERMINATING = "Terminating", "A pod to be deleted is being terminated.", WAIT
    NODE_SET_READY = "NodeSetReady", "All workers of the NodeSet are available.", NOTHING
    NODE_SET_NOT_READY = (
        "NodeSetNotReady",
        "Some workers of the NodeSet are not available.",
        "Read the condition Ready of the same object.",
    )
    ADOPTING = (
        "AdoptingWorkers",
        "Pods of another operator's StatefulSet are being taken over.",
        WAIT,
    )
    NO_ENROOT = "NoEnroot", "The workers have no enroot any more.", NOTHING
    RIGHTS_GIVEN = "RightsGiven", "The workers have the rights that enroot needs.", NOTHING
    RIGHTS_MISSING = (
        "RightsMissing",
        "The workers lack rights that enroot needs, so jobs with containers fail.",
        "Add the rights that the message names to the securityContext.",
        PERSON,
    )
