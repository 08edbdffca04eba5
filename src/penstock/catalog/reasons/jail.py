"""Reasons about the jail and the components of a SlurmCluster."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class JailReason(ConditionReason):
    """Reasons about a SlurmCluster and its jail."""

    AVAILABLE = "Available", "The component has its pods.", NOTHING
    NOT_AVAILABLE = (
        "NotAvailable",
        "The component lacks pods, or is not enabled.",
        "Read the message; the condition Ready has the reason.",
    )
    MAINTENANCE = (
        "Maintenance",
        "spec.maintenance scales the cluster down.",
        "Set spec.maintenance to none to end it.",
    )
    MODE_NONE = "none", "spec.maintenance is none.", NOTHING
    MODE_DOWNSCALE = "downscale", "spec.maintenance stops the daemons.", NOTHING
    MODE_DELETE = (
        "downscaleAndDeletePopulateJail",
        "spec.maintenance stops the daemons and deletes the Job that fills the jail.",
        NOTHING,
    )
    MODE_OVERWRITE = (
        "downscaleAndOverwritePopulateJail",
        "spec.maintenance stops the daemons and fills the jail again.",
        NOTHING,
    )
    MODE_SKIP = "skipPopulateJail", "spec.maintenance skips the Job that fills the jail.", NOTHING
    NO_JAIL = (
        "NoJail",
        "spec.jailMode is None, so there is nothing that fills or writes a jail.",
        "Mount the ConfigMaps of JailedConfigs by customMounts.",
    )
    POPULATE_RUNNING = "PopulateJailRunning", "The Job fills the jail.", WAIT
    POPULATE_DELETING = "PopulateJailDeleting", "The Job is being deleted.", WAIT
    POPULATE_DELETED = "PopulateJailDeleted", "The maintenance mode deleted the Job.", NOTHING
    POPULATE_SKIPPED = "PopulateJailSkipped", "The maintenance mode skips the Job.", NOTHING
    POPULATE_COMPLETE = "PopulateJailComplete", "The jail is filled.", NOTHING
    POPULATE_FAILED = (
        "PopulateJailFailed",
        "The Job that fills the jail failed, so no login or worker starts.",
        "Correct the Job's declaration, or delete the Job to repeat it.",
        PERSON,
    )
    SHARED = "ReadWriteMany", "Pods on all Kubernetes nodes can mount the jail.", NOTHING
    NOT_SHARED = (
        "NotReadWriteMany",
        "Pods on one Kubernetes node alone can mount the jail's PVC.",
        "Name a PVC with ReadWriteMany, or keep all pods on one Kubernetes node.",
        PERSON,
    )
    STOPPED = (
        "ClusterStopped",
        "The annotation penstock.dev/stopped stops the cluster, and nothing fills its jail.",
        "Wait for the Restore that it names, or remove the annotation.",
    )
    IN_USE = (
        "JailInUse",
        "Pods use the jail, so it is not filled while they run.",
        "To overwrite it, wait until these pods have ended.",
    )
    NOT_POPULATED = (
        "JailNotPopulated",
        "Workers wait until the jail is filled.",
        "Read the condition JailPopulated of the SlurmCluster.",
    )
    MODE_CONFLICT = (
        "JailModeConflict",
        "A NodeSet and its SlurmCluster declare jails that exclude each other.",
        "Correct the field that the message names.",
        PERSON,
    )
    ROOTS_EQUAL = "RootsEqual", "The roots of all workers have the same content.", NOTHING
    ROOTS_UNKNOWN = "RootsUnknown", "Some workers have not reported their root yet.", WAIT
    ROOTS_DIFFER = (
        "RootsDiffer",
        "The root of a worker has other packages, programs or accounts than most.",
        "Make the change on each worker, or fill the root of that worker again.",
        PERSON,
    )
