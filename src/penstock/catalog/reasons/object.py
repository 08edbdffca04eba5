"""Reasons about any object: its declaration, and the objects that it names."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class ObjectReason(ConditionReason):
    """Reasons about any object, and about the objects that it names."""

    SETTLED = "Settled", "The object has its desired state.", NOTHING
    INVALID = (
        "Invalid",
        "A field has a value that cannot work. Nothing is changed or deleted for the object.",
        "Correct the field that the message names.",
        PERSON,
    )
    REFUSED = (
        "Refused",
        "The API server rejected an object that the operator writes for this one.",
        "Remove the cause in the API server's words: a right, a quota, a policy or a field.",
        PERSON,
    )
    INTERNAL_ERROR = (
        "InternalError",
        "The reconcile of this object failed unexpectedly. It stays as it is; others go on.",
        "Undo the last change of the object, and report the message with the operator's log.",
        PERSON,
    )
    FIELDS_NOT_SERVED = (
        "FieldsNotServed",
        "The object has fields that this version does not serve. All others are in effect.",
        "Remove the fields, or read in the message what happens in their place.",
        PERSON,
    )
    ALL_FIELDS_SERVED = "AllFieldsServed", "Each field of the object is served.", NOTHING
    SECRET_NOT_FOUND = (
        "SecretNotFound",
        "A Secret that the object names does not exist, or lacks the key.",
        "Create the Secret with that key, or correct the reference.",
        PERSON,
    )
    PVC_NOT_FOUND = (
        "PvcNotFound",
        "PVCs that the object names do not exist in its namespace.",
        "Create the PVCs; pods that mount them wait until then.",
        PERSON,
    )
    METRICS_INCOMPLETE = (
        "MetricsIncomplete",
        "An object of the exporter, or a monitor, cannot be written. It is tried again.",
        "Remove the cause in the message; the cluster runs without it.",
    )
    CONFIG_MAP_NOT_FOUND = (
        "ConfigMapNotFound",
        "A ConfigMap that the object names does not exist, or lacks the key.",
        "Create the ConfigMap, or remove the reference.",
        PERSON,
    )
    CONTROLLER_NOT_FOUND = (
        "ControllerNotFound",
        "The Controller in spec.controllerRef does not exist in this namespace.",
        "Create the Controller, or correct spec.controllerRef.name.",
        PERSON,
    )
    CONTROLLER_DELETING = (
        "ControllerDeleting",
        "The Controller of the object is being deleted, and the object is not.",
        "Delete the object too, or create the Controller again once it is gone.",
        PERSON,
    )
    CONTROLLER_GONE = (
        "ControllerGone",
        "A deleted NodeSet has no Controller any more, or one that is being deleted.",
        WAIT,
    )
    CONTROLLER_INVALID = (
        "ControllerInvalid",
        "The Controller is invalid, so nothing of the objects that name it changes.",
        "Correct the Controller; its own condition names the field.",
    )
    SLURM_CLUSTER_NOT_FOUND = (
        "SlurmClusterNotFound",
        "The SlurmCluster that a NodeSet belongs to does not exist in this namespace.",
        "Create the SlurmCluster, or correct spec.clusterName.",
        PERSON,
    )
    SLURM_CLUSTER_DELETING = (
        "SlurmClusterDeleting",
        "The SlurmCluster of a NodeSet is being deleted, and the NodeSet is not.",
        "Delete the NodeSet too, or create the SlurmCluster again once it is gone.",
        PERSON,
    )
    SLURM_CLUSTER_GONE = (
        "SlurmClusterGone",
        "A deleted NodeSet has no SlurmCluster any more, or one that is being deleted.",
        WAIT,
    )
    METRICS_UNSUPPORTED = (
        "MetricsUnsupported",
        "spec.metrics is enabled, and this release of slurmctld has no metrics.",
        "Use an image of a later Slurm, or disable spec.metrics.",
        PERSON,
    )
    SERVICE_MONITOR_UNKNOWN = (
        "ServiceMonitorUnknown",
        "A ServiceMonitor is requested, and the Kubernetes cluster has no such kind.",
        "Install the definitions of the Prometheus operator, or disable the ServiceMonitor.",
        PERSON,
    )
    SERVICE_MONITOR_MADE = "ServiceMonitorMade", "The ServiceMonitor exists.", NOTHING


def cluster_gone(kind: str) -> ObjectReason:
    """The reason of a worker set whose cluster, an object of that kind, is gone or going."""
    return ObjectReason(f"{kind}Gone")


def cluster_deleting(kind: str) -> ObjectReason:
    """The reason of a worker set whose cluster, an object of that kind, is being deleted."""
    return ObjectReason(f"{kind}Deleting")


def cluster_not_found(kind: str) -> ObjectReason:
    """The reason of a worker set whose cluster, an object of that kind, does not exist."""
    return ObjectReason(f"{kind}NotFound")
