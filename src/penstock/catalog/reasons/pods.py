"""Reasons about pods, their PVCs and their adoption from another operator."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class PodReason(ConditionReason):
    """Reasons about pods of any daemon."""

    READY = "PodsReady", "All pods are ready.", NOTHING
    NOT_READY = "PodsNotReady", "Pods start, or wait for a Kubernetes node.", WAIT
    FAILING = (
        "PodsFailing",
        "A container cannot start: its image, its configuration, or it ends at once.",
        "Correct the cause that the message quotes.",
        PERSON,
    )
    SECURITY_REFUSED = (
        "PodSecurityRefused",
        "The pod security level of the namespace rejects a worker's pod.",
        "Change the namespace's level, or declare the worker with fewer rights.",
        PERSON,
    )
    CLAIM_KEPT = (
        "ClaimKept",
        "The declared PVC differs from the existing one, which Kubernetes does not change.",
        "Enlarge the PVC itself, or delete StatefulSet and PVC for another one.",
    )
    CLAIM_TEMPLATE_MISSING = (
        "ClaimTemplateMissing",
        "The StatefulSet lacks a declared claim template, which Kubernetes does not add.",
        "Delete the StatefulSet with --cascade=orphan --wait=false, then its pods one by one.",
        PERSON,
    )
    CLAIM_NOT_SHARED = (
        "ClaimNotShared",
        "slurmctld has backups, and its PVC cannot be mounted by several pods.",
        "Name a PVC with ReadWriteMany in spec.persistence.existingClaim.",
        PERSON,
    )
    AS_THEY_WERE = (
        "PodsAsTheyWere",
        "Pods of another operator stay until their spec changes.",
        "Set the annotation penstock.dev/adopted-pods to Replace to have them replaced.",
    )
    REPLACEMENT_WAITS = (
        "ReplacementWaits",
        "Pods of another operator are to be replaced, and wait for the cause in the message.",
        WAIT,
    )
    REPLACED = "PodsReplaced", "The pods have Penstock's template.", NOTHING
    HOST_NETWORK = (
        "HostNetwork",
        "Pods use the network of their Kubernetes node, where NetworkPolicies do not apply.",
        "Restrict connections with a firewall, or remove hostNetwork.",
    )
    POD_NETWORK = "PodNetwork", "Pods use the network of pods again.", NOTHING
